"""Rules for the two rates, and the spectra of surrogate losses behind them.

For Theta_{1:K}. How fast the process converges with these rates is in
`convergence`.
"""

import math
from typing import NamedTuple

from tff_localupdate import arguments
from tff_localupdate.theory import constants as constants_lib
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
    constants: constants_lib.PopulationConstants,
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
  constants_lib.check_below_inverse(
      client_learning_rate, constants.smoothness
  )
  mu, smoothness = spectrum.phi(
      num_steps,
      [constants.strong_convexity, constants.smoothness],
      client_learning_rate,
  )
  return float(mu), float(smoothness)


def max_server_rate(
    constants: constants_lib.PopulationConstants,
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
    constants: constants_lib.PopulationConstants,
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
    constants: constants_lib.PopulationConstants,
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
