"""Section 5: spectra of Q_i and of the surrogate's Hessian Q_i A_i.

Q_i is a polynomial in A_i, so the two share their eigenvectors, and all that
has to be known is what becomes of one eigenvalue lam of A_i, mu <= lam <= L:

    Q_i:      q(lam) = sum_k theta_k (1 - gamma lam)^{k-1}     falls with lam
    Q_i A_i:  lam q(lam)                                       may do either

Source: Charles and Konecny (2020), section 5.

`num_steps` is K, `theta` the weights, `eigenvalue` lam, `strong_convexity` mu
and `smoothness` L with 0 < mu <= L, and `client_learning_rate` gamma; as a
`ClientRate` it may be a sequence gamma_1, ..., gamma_K(Theta), whose last entry
changes nothing. All functions raise ValueError for an invalid argument.
"""

from collections.abc import Sequence
import math
from typing import Optional, Union

import numpy as np

from tff_localupdate import arguments
from tff_localupdate import theta as theta_lib
from tff_localupdate.theory import quadratics

# gamma, or gamma_1, ..., gamma_K for a rate that changes in the inner loop.
ClientRate = Union[float, Sequence[float]]

# Below this, (1 - (1 - u)^K)/u is K to all digits, but its parts underflow.
_TINY = 1e-280


def phi(
    num_steps: int,
    eigenvalue: np.ndarray,
    client_learning_rate: np.ndarray,
) -> np.ndarray:
  """Returns phi_{K,lam}(gamma), the eigenvalue of Q_i A_i for Theta_{1:K}.

      phi_{K,lam}(gamma) = (1 - (1 - gamma lam)^K) / gamma,   K lam at gamma = 0
                         = lam sum_{k=1}^K (1 - gamma lam)^{k-1}   (17), (18)

  Exact to rounding at every gamma >= 0 and lam >= 0, numbers or arrays;
  float64, of the shape to which the two broadcast.
  """
  arguments.check_count('num_steps', num_steps)
  eigenvalue = _checked_array('eigenvalue', eigenvalue)
  gamma = _checked_array('client_learning_rate', client_learning_rate)
  product = gamma * eigenvalue
  # lam (1 - r^K)/u with u = gamma lam, r = 1 - u. Near u = 0 the quotient loses
  # all digits, so r^K - 1 is expm1(K log1p(-u)). Beyond u = 1, r is negative:
  # log|r| = log1p(u - 2), and the sign of r^K is that of its parity.
  with np.errstate(divide='ignore', invalid='ignore', over='ignore'):
    log_size = np.where(
        product < 1.0, np.log1p(-product), np.log1p(product - 2.0)
    )
    # An odd power of a negative number: 1 - (-|r|)^K = 1 + |r|^K.
    alternates = (product > 1.0) & (num_steps % 2 == 1)
    numerator = np.where(
        alternates,
        1.0 + np.exp(num_steps * log_size),
        -np.expm1(num_steps * log_size),
    )
    quotient = np.where(product < _TINY, num_steps, numerator / product)
  return eigenvalue * quotient


def phi_difference(
    num_steps: int, eigenvalue: float, first_rate: float, second_rate: float
) -> float:
  """Returns phi_{K,lam}(gamma_1) - phi_{K,lam}(gamma_2) without cancellation.

  For 0 <= gamma_1 <= gamma_2 < 1/lam; it is not negative. At gamma_1 = 0 it is
  K lam - phi_{K,lam}(gamma_2), the numerator of Theorem 17.
  """
  arguments.check_count('num_steps', num_steps)
  arguments.check_positive('eigenvalue', eigenvalue)
  quadratics.check_below_inverse(second_rate, eigenvalue)
  arguments.check_not_negative('first_rate', first_rate)
  if first_rate > second_rate:
    raise ValueError(
        f'first_rate must not be above second_rate, {second_rate}, found '
        f'{first_rate}.'
    )
  # With r = 1 - gamma_1 lam and r' = 1 - gamma_2 lam it is lam sum_{k<K}
  # (r^k - r'^k) = -lam sum_{k<K} r^k ((r'/r)^k - 1): no term is negative.
  powers = np.arange(num_steps)
  log_first = math.log1p(-first_rate * eigenvalue)
  log_ratio = math.log1p(
      -(second_rate - first_rate) * eigenvalue / (1.0 - first_rate * eigenvalue)
  )
  terms = -np.exp(powers * log_first) * np.expm1(powers * log_ratio)
  return eigenvalue * math.fsum(terms)


def update_eigenvalues(
    eigenvalues: np.ndarray,
    theta: theta_lib.Theta,
    client_learning_rate: ClientRate,
) -> np.ndarray:
  """Returns the eigenvalue of Q_i that belongs to each eigenvalue of A_i.

      lam -> sum_k theta_k (1 - gamma lam)^{k-1},  with 0^0 = 1    (Lemma 6)

  and sum_k theta_k prod_{l<k} (1 - gamma_l lam) for a sequence of rates. Times
  lam it is the eigenvalue of Q_i A_i (Lemma 10). `eigenvalues` is a number or
  an array; the result has its shape.
  """
  eigenvalues = np.asarray(eigenvalues, np.float64)
  rates = checked_rates(client_learning_rate, theta)
  # Horner's rule, from the last step: q_k = theta_k + (1 - gamma_k lam)
  # q_{k+1}.
  values = np.zeros_like(eigenvalues)
  for weight, rate in zip(reversed(theta.weights), reversed(rates)):
    values = weight + (1.0 - rate * eigenvalues) * values
  return values


def update_bounds(
    theta: theta_lib.Theta,
    strong_convexity: float,
    smoothness: float,
    client_learning_rate: float,
) -> tuple[float, float]:
  """Returns the smallest and the largest eigenvalue that a Q_i can have.

  At lam = L and lam = mu (Lemma 6), attained if these are, for gamma < 1/L. For
  Theta_K they are (1 - gamma L)^{K-1} and (1 - gamma mu)^{K-1} (Lemma 7), for
  Theta_{1:K} phi_{K,L}(gamma)/L and phi_{K,mu}(gamma)/mu (Lemma 8).
  """
  quadratics.check_spectrum(strong_convexity, smoothness)
  quadratics.check_below_inverse(client_learning_rate, smoothness)
  lower, upper = update_eigenvalues(
      np.array([smoothness, strong_convexity]), theta, client_learning_rate
  )
  return float(lower), float(upper)


def surrogate_bounds(
    theta: theta_lib.Theta,
    strong_convexity: float,
    smoothness: float,
    client_learning_rate: float,
) -> tuple[float, float]:
  """Returns bounds on the eigenvalues of all Q_i A_i, the best known ones.

  With q(lam) the eigenvalue of Q_i that belongs to lam, for gamma < 1/L:

      mu q(mu), L q(L)   for c (1, ..., 1)                     (Lemma 11)
      mu q(mu), L q(L)   for c Theta_K if gamma < 1/(K L)      (Lemma 12)
      mu q(L),  L q(mu)  else                                  (Lemma 10)

  The first two are attained if lam = mu and lam = L are. For Theta_{1:K} they
  are phi_{K,mu}(gamma) and phi_{K,L}(gamma).
  """
  at_smoothness, at_convexity = update_bounds(
      theta, strong_convexity, smoothness, client_learning_rate
  )
  scale = ones_scale(theta)
  if scale is not None:
    ends = np.array([strong_convexity, smoothness])
    lower, upper = scale * phi(theta.num_steps, ends, client_learning_rate)
    return float(lower), float(upper)
  is_single = not any(theta.weights[:-1])
  if is_single and theta.num_steps * smoothness * client_learning_rate < 1.0:
    return strong_convexity * at_convexity, smoothness * at_smoothness
  return strong_convexity * at_smoothness, smoothness * at_convexity


def condition_number_bound(
    theta: theta_lib.Theta,
    strong_convexity: float,
    smoothness: float,
    client_learning_rate: float,
) -> float:
  """Returns a bound on the condition number of the surrogate loss.

      (1 - (1 - gamma L)^K) / (1 - (1 - gamma mu)^K)       for Theta_{1:K}
      (L/mu) ((1 - gamma L)/(1 - gamma mu))^{K-1}          for Theta_K

  both at most L/mu, for gamma < 1/L (Corollary 13; derived, sure up to its
  layout). The second needs gamma < 1/(K L). For any other case it is the
  quotient of Lemma 10, which may be above L/mu, and is infinite where the lower
  end underflows.
  """
  lower, upper = surrogate_bounds(
      theta, strong_convexity, smoothness, client_learning_rate
  )
  return upper / lower if lower else math.inf


def checked_rates(
    client_learning_rate: ClientRate, theta: theta_lib.Theta
) -> tuple[float, ...]:
  """Returns gamma_1, ..., gamma_K(Theta) as floats, a single gamma repeated."""
  rates = np.asarray(client_learning_rate, np.float64)
  if rates.shape not in ((), (theta.num_steps,)):
    raise ValueError(
        'client_learning_rate must be a number or a sequence of '
        f'{theta.num_steps} numbers, found shape {rates.shape}.'
    )
  _checked_array('client_learning_rate', rates)
  return tuple(np.broadcast_to(rates, (theta.num_steps,)).tolist())


def ones_scale(theta: theta_lib.Theta) -> Optional[float]:
  """Returns c if `theta` is c (1, ..., 1), else None."""
  first = theta.weights[0]
  return first if theta.weights == (first,) * theta.num_steps else None


def _checked_array(name: str, values: np.ndarray) -> np.ndarray:
  values = np.asarray(values, np.float64)
  if not np.all(np.isfinite(values)) or np.any(values < 0.0):
    raise ValueError(
        f'{name} must be finite and not negative, found {values}.'
    )
  return values
