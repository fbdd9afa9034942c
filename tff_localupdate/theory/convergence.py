"""Rules for the two rates, and the spectra of surrogate losses behind them.

For Theta_{1:K}. How fast the process converges with these rates is in
`convergence`.

Section 7: how fast LocalUpdate comes near a minimizer, with which rates.

For Theta_{1:K}, with mu_gamma = phi_{K,mu}(gamma), L_gamma = phi_{K,L}(gamma),
x*_gamma = x*(gamma, Theta_{1:K}), and rounds t = 1, 2, ... from x_1. What the
bounds need of the noise is V >= E||q_t - grad ftilde(x_t)||^2 along the
iterates; the paper's V = K G^2/(M B) follows from its Assumption 4, which is
lost. Mind that differences between clients are part of V, and that B does not
reduce them.
"""

import math
from typing import NamedTuple

import numpy as np

from tff_localupdate import arguments
from tff_localupdate.theory import bounds
from tff_localupdate.theory import quadratics
from tff_localupdate.theory import spectrum


class InverseTimeRate(NamedTuple):
  """A rate that is `scale`/(t + `offset`) in round t = 1, 2, ...

  Attributes:
    scale: The numerator.
    offset: xi.
  """

  scale: float
  offset: float

  def at(self, round_num: int) -> float:
    """Returns the rate in round t = `round_num`."""
    return self.scale / (round_num + self.offset)


def max_linear_rate(
    epsilon: float, num_steps: int, eigenvalue: float
) -> float:
  """Returns the largest gamma at which phi is nearly what it is at 0.

  If 0 <= eps <= 1 - e^{-K} and gamma <= ln(1/(1 - eps))/(K lam), the value
  returned, then (1 - eps) K lam <= phi_{K,lam}(gamma) <= K lam (Lemma 18).

  Args:
    epsilon: eps.
    num_steps: K.
    eigenvalue: lam, positive.

  Returns:
    The limit, at most 1/lam.

  Raises:
    ValueError: If an argument is out of its range.
  """
  arguments.check_count('num_steps', num_steps)
  arguments.check_positive('eigenvalue', eigenvalue)
  arguments.check_not_negative('epsilon', epsilon)
  if epsilon > -math.expm1(-num_steps) or epsilon >= 1.0:
    raise ValueError(
        f'epsilon must be at most 1 - exp(-{num_steps}) and below 1, found '
        f'{epsilon}.'
    )
  return -math.log1p(-epsilon) / (num_steps * eigenvalue)


def min_epsilon(
    client_learning_rate: float, num_steps: int, eigenvalue: float
) -> float:
  """Returns the least eps of Lemma 18 for gamma: 1 - exp(-gamma K lam).

  Args:
    client_learning_rate: gamma, not negative.
    num_steps: K.
    eigenvalue: lam, positive.

  Returns:
    eps, which Lemma 18 admits if gamma <= 1/lam.

  Raises:
    ValueError: If an argument is out of its range.
  """
  arguments.check_count('num_steps', num_steps)
  arguments.check_positive('eigenvalue', eigenvalue)
  arguments.check_not_negative('client_learning_rate', client_learning_rate)
  return -math.expm1(-client_learning_rate * num_steps * eigenvalue)


def surrogate_constants(
    constants: quadratics.PopulationConstants,
    num_steps: int,
    client_learning_rate: float,
) -> tuple[float, float]:
  """Returns mu_gamma and L_gamma.

  Args:
    constants: mu, L, sigma_A, sigma_c.
    num_steps: K.
    client_learning_rate: gamma < 1/L.

  Returns:
    The two bounds on the eigenvalues of the surrogate's Hessian (Lemma 11).

  Raises:
    ValueError: If an argument is out of its range.
  """
  quadratics.check_below_inverse(
      client_learning_rate, constants.smoothness
  )
  mu, smoothness = spectrum.phi(
      num_steps,
      [constants.strong_convexity, constants.smoothness],
      client_learning_rate,
  )
  return float(mu), float(smoothness)


def max_server_rate(
    constants: quadratics.PopulationConstants,
    num_steps: int,
    client_learning_rate: float,
) -> float:
  """Returns mu_gamma/L_gamma^2, the largest eta of the theorems (22).

  Args:
    constants: mu, L, sigma_A, sigma_c.
    num_steps: K.
    client_learning_rate: gamma < 1/L.

  Returns:
    The limit on eta.

  Raises:
    ValueError: If an argument is out of its range.
  """
  mu, smoothness = surrogate_constants(
      constants, num_steps, client_learning_rate
  )
  return mu / smoothness**2


def decaying_server_rate(
    constants: quadratics.PopulationConstants,
    num_steps: int,
    client_learning_rate: float,
) -> InverseTimeRate:
  """Returns eta_t = 2/(mu_gamma (t + xi)) of Theorem 27.

  With xi = 2 kappa_gamma^2 - 1, so that eta_1 is mu_gamma/L_gamma^2. House: the
  printed xi is lost.

  Args:
    constants: mu, L, sigma_A, sigma_c.
    num_steps: K.
    client_learning_rate: gamma < 1/L.

  Returns:
    The server rate.

  Raises:
    ValueError: If an argument is out of its range.
  """
  mu, smoothness = surrogate_constants(
      constants, num_steps, client_learning_rate
  )
  return InverseTimeRate(2.0 / mu, 2.0 * (smoothness / mu) ** 2 - 1.0)


def decaying_rates(
    constants: quadratics.PopulationConstants,
    num_steps: int,
    client_learning_rate: float,
) -> tuple[InverseTimeRate, InverseTimeRate]:
  """Returns gamma_t and eta_t of Theorem 29, with which x_t reaches x*.

      gamma_t = gamma_1 (1 + xi)/(t + xi),   eta_t = 4/(m (t + xi))
      m = phi_{K,mu}(gamma_1),               xi = 4 (K L/m)^2 - 1

  House: the printed constants are lost.

  Args:
    constants: mu, L, sigma_A, sigma_c.
    num_steps: K.
    client_learning_rate: gamma_1 < 1/L.

  Returns:
    The client rate and the server rate.

  Raises:
    ValueError: If an argument is out of its range.
  """
  mu, _ = surrogate_constants(constants, num_steps, client_learning_rate)
  xi = 4.0 * (num_steps * constants.smoothness / mu) ** 2 - 1.0
  return (
      InverseTimeRate(client_learning_rate * (1.0 + xi), xi),
      InverseTimeRate(4.0 / mu, xi),
  )


def one_round_bound(
    constants: quadratics.PopulationConstants,
    *,
    num_steps: int,
    client_learning_rate: float,
    server_learning_rate: float,
    distance_squared: float,
    update_variance: float,
) -> float:
  """Returns a bound on E||x_{t+1} - x*_gamma||^2 (Lemma 25).

      (1 - eta mu_gamma) E||x_t - x*_gamma||^2 + eta^2 V

  Args:
    constants: mu, L, sigma_A, sigma_c.
    num_steps: K.
    client_learning_rate: gamma < 1/L.
    server_learning_rate: eta, within (22).
    distance_squared: E||x_t - x*_gamma||^2.
    update_variance: V.

  Returns:
    The bound.

  Raises:
    ValueError: If an argument is out of its range.
  """
  return constant_rate_bound(
      constants,
      num_steps=num_steps,
      client_learning_rate=client_learning_rate,
      server_learning_rate=server_learning_rate,
      round_num=2,
      distance_squared=distance_squared,
      update_variance=update_variance,
  )


def constant_rate_bound(
    constants: quadratics.PopulationConstants,
    *,
    num_steps: int,
    client_learning_rate: float,
    server_learning_rate: float,
    round_num: int,
    distance_squared: float,
    update_variance: float,
) -> float:
  """Returns a bound on E||x_t - x*_gamma||^2 for constant rates (Theorem 26).

      r^{t-1} ||x_1 - x*_gamma||^2 + (eta V/mu_gamma) (1 - r^{t-1})
      r = 1 - eta mu_gamma

  Derived: Lemma 25 applied t - 1 times.

  Args:
    constants: mu, L, sigma_A, sigma_c.
    num_steps: K.
    client_learning_rate: gamma < 1/L.
    server_learning_rate: eta, within (22).
    round_num: t.
    distance_squared: ||x_1 - x*_gamma||^2.
    update_variance: V.

  Returns:
    The bound.

  Raises:
    ValueError: If an argument is out of its range.
  """
  _check_round(round_num, distance_squared, update_variance)
  arguments.check_not_negative('server_learning_rate', server_learning_rate)
  limit = max_server_rate(constants, num_steps, client_learning_rate)
  if server_learning_rate > limit * (1.0 + 1e-12):
    raise ValueError(
        f'server_learning_rate must be at most {limit}, mu_gamma/L_gamma^2, '
        f'found {server_learning_rate}.'
    )
  mu, _ = surrogate_constants(constants, num_steps, client_learning_rate)
  power = (1.0 - server_learning_rate * mu) ** (round_num - 1)
  noise = server_learning_rate * update_variance / mu
  return power * distance_squared + noise * (1.0 - power)


def decaying_rate_bound(
    constants: quadratics.PopulationConstants,
    *,
    num_steps: int,
    client_learning_rate: float,
    round_num: int,
    distance_squared: float,
    update_variance: float,
) -> float:
  """Returns a bound on E||x_t - x*_gamma||^2 for a decaying eta (Theorem 27).

      max{4 V/mu_gamma^2, (1 + xi) ||x_1 - x*_gamma||^2} / (t + xi)

  with eta_t and xi of `rates.decaying_server_rate`. House: of the printed form
  the rate O(1/t) is sure.

  Args:
    constants: mu, L, sigma_A, sigma_c.
    num_steps: K.
    client_learning_rate: gamma < 1/L.
    round_num: t.
    distance_squared: ||x_1 - x*_gamma||^2.
    update_variance: V.

  Returns:
    The bound.

  Raises:
    ValueError: If an argument is out of its range.
  """
  _check_round(round_num, distance_squared, update_variance)
  mu, _ = surrogate_constants(constants, num_steps, client_learning_rate)
  xi = decaying_server_rate(
      constants, num_steps, client_learning_rate
  ).offset
  start = (1.0 + xi) * distance_squared
  return max(4.0 * update_variance / mu / mu, start) / (round_num + xi)


def true_minimizer_bound(
    constants: quadratics.PopulationConstants,
    *,
    num_steps: int,
    client_learning_rate: float,
    round_num: int,
    distance_squared: float,
    update_variance: float,
) -> float:
  """Returns a bound on E||x_t - x*||^2 for a decaying eta (Theorem 28).

      2 (bound of Theorem 27) + 2 ((eps/(1 - eps)) (L/mu) sigma_c
                                   (1 + sigma_A/mu))^2

  for gamma <= ln(1/(1 - eps))/(K L), by Corollary 19. Taken at the least such
  eps, where eps/(1 - eps) = exp(gamma K L) - 1. The first term tends to 0, the
  second stays: with a constant gamma > 0 the process does not reach x*, unless
  sigma_c = 0. House: the printed constants are lost.

  Args:
    constants: mu, L, sigma_A, sigma_c.
    num_steps: K.
    client_learning_rate: gamma < 1/L.
    round_num: t.
    distance_squared: ||x_1 - x*_gamma||^2, from the surrogate's minimizer.
    update_variance: V.

  Returns:
    The bound.

  Raises:
    ValueError: If an argument is out of its range.
  """
  to_surrogate = decaying_rate_bound(
      constants,
      num_steps=num_steps,
      client_learning_rate=client_learning_rate,
      round_num=round_num,
      distance_squared=distance_squared,
      update_variance=update_variance,
  )
  gap = constants.condition_number * constants.heterogeneity
  if gap > 0.0:  # Else it stays 0, however large the exponential.
    exponent = client_learning_rate * num_steps * constants.smoothness
    with np.errstate(over='ignore'):
      gap *= float(np.expm1(exponent))
  # Not gap**2, which raises where the product is infinite.
  return 2.0 * to_surrogate + 2.0 * gap * gap


def decaying_rates_bound(
    constants: quadratics.PopulationConstants,
    *,
    num_steps: int,
    client_learning_rate: float,
    round_num: int,
    distance_squared: float,
    update_variance: float,
) -> float:
  """Returns a bound on E||x_t - x*||^2 if both rates decay (Theorem 29).

      2 nu/(t + xi) + 2 (C gamma_t)^2
      nu = max{(1 + xi) ||x_1 - x*_{gamma_1}||^2,
               32 V/m^2 + C^2 gamma_1^2 (1 + xi)}

  with gamma_t, eta_t, m, xi of `rates.decaying_rates` and C of Corollary 22.
  House: of the printed form the rate O(1/t) and its dependence on
  ||x_1 - x*_1|| and kappa are sure.

  Args:
    constants: mu, L, sigma_A, sigma_c.
    num_steps: K.
    client_learning_rate: gamma_1 < 1/L.
    round_num: t.
    distance_squared: ||x_1 - x*_{gamma_1}||^2.
    update_variance: V.

  Returns:
    The bound.

  Raises:
    ValueError: If an argument is out of its range.
  """
  _check_round(round_num, distance_squared, update_variance)
  mu, _ = surrogate_constants(constants, num_steps, client_learning_rate)
  client_rate, _ = decaying_rates(
      constants, num_steps, client_learning_rate
  )
  xi = client_rate.offset
  path = bounds.path_constant(constants, num_steps)
  noise = 32.0 * update_variance / mu / mu
  start_gap = path * client_learning_rate
  noise += start_gap * start_gap * (1.0 + xi)
  nu = max((1.0 + xi) * distance_squared, noise)
  gap = path * client_rate.at(round_num)
  return 2.0 * nu / (round_num + xi) + 2.0 * gap * gap


def _check_round(
    round_num: int, distance_squared: float, update_variance: float
) -> None:
  arguments.check_count('round_num', round_num)
  arguments.check_not_negative('distance_squared', distance_squared)
  arguments.check_not_negative('update_variance', update_variance)
