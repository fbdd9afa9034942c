"""Section 6: how far apart the minimizers of the surrogate losses are.

All distances are Euclidean. The paper's printed constants are lost: what is
marked derived was derived anew along the surviving proofs, and house where a
constant was chosen. All of them hold, and are compared with exact distances in
the tests; they may be smaller or larger than the printed ones.
"""

import math

import numpy as np

from tff_localupdate import arguments
from tff_localupdate import theta as theta_lib
from tff_localupdate.theory import quadratics
from tff_localupdate.theory import spectrum


def surrogate_loss_limit(
    population: quadratics.QuadraticPopulation,
    x: np.ndarray,
    client_learning_rate: float,
) -> float:
  """Returns (1/(2 gamma)) E||x - c_i||^2, the limit of ftilde (Lemma 15).

  For 0 < gamma < 1/L the surrogate loss at x for Theta_{1:K} grows with K to
  this value, so its minimizer tends to c, the mean of the clients' minimizers.
  The lemma does not say that c is farther from x* than the minimizers on the
  way, which is false.

  Args:
    population: The clients.
    x: The point, [d].
    client_learning_rate: gamma, 0 < gamma < 1/L.

  Returns:
    The bound.

  Raises:
    ValueError: If `client_learning_rate` is out of its range.
  """
  arguments.check_positive('client_learning_rate', client_learning_rate)
  quadratics.check_below_inverse(
      client_learning_rate, population.constants.smoothness
  )
  squares = np.sum((x - population.centers) ** 2, axis=1)
  return float(population.mean(squares)) / (2.0 * client_learning_rate)


def distance_bound(
    constants: quadratics.PopulationConstants,
    theta: theta_lib.Theta,
    client_learning_rate: float,
) -> float:
  """Returns a bound on ||x*(gamma, Theta) - x*|| for any Theta (Theorem 16).

      (L/mu) ((1 - s)/s) sigma_c (1 + sigma_A/mu)
      s = sum_k theta_k (1 - gamma L)^{k-1} / sum_k theta_k

  Derived: the printed constants may differ.

  Args:
    constants: mu, L, sigma_A, sigma_c.
    theta: The Theta weights.
    client_learning_rate: gamma < 1/L.

  Returns:
    The bound; 0 if gamma = 0, Theta = Theta_1 or sigma_c = 0.

  Raises:
    ValueError: If `client_learning_rate` is out of its range.
  """
  smoothness = constants.smoothness
  quadratics.check_below_inverse(client_learning_rate, smoothness)
  if not constants.heterogeneity:  # Whatever underflows below.
    return 0.0
  log_ratio = math.log1p(-client_learning_rate * smoothness)
  # 1 - s by itself, which keeps its digits at small gamma.
  missing = -math.fsum(
      weight * math.expm1(step * log_ratio)
      for step, weight in enumerate(theta.weights)
  ) / theta.sum
  left = math.fsum(
      weight * math.exp(step * log_ratio)
      for step, weight in enumerate(theta.weights)
  ) / theta.sum
  if left == 0.0:  # Every power underflowed.
    return math.inf
  return constants.condition_number * missing / left * constants.heterogeneity


def fed_avg_distance_bound(
    constants: quadratics.PopulationConstants,
    num_steps: int,
    client_learning_rate: float,
) -> float:
  """Returns a bound on ||x*(gamma, Theta_{1:K}) - x*|| (Theorem 17).

      ((K L - phi_{K,L}(gamma)) / phi_{K,mu}(gamma)) sigma_c (1 + sigma_A/mu)

  Derived: the surviving proof has the same terms, the constants may differ.

  Args:
    constants: mu, L, sigma_A, sigma_c.
    num_steps: K.
    client_learning_rate: gamma < 1/L.

  Returns:
    The bound.

  Raises:
    ValueError: If an argument is out of its range.
  """
  numerator = spectrum.phi_difference(
      num_steps, constants.smoothness, 0.0, client_learning_rate
  )
  denominator = float(
      spectrum.phi(num_steps, constants.strong_convexity, client_learning_rate)
  )
  return numerator / denominator * constants.heterogeneity


def linear_rate_distance_bound(
    constants: quadratics.PopulationConstants, epsilon: float
) -> float:
  """Returns a bound on ||x*(gamma, Theta_{1:K}) - x*|| (Corollary 19).

      (eps/(1 - eps)) (L/mu) sigma_c (1 + sigma_A/mu)

  for every gamma up to `rates.max_linear_rate(eps, K, L)`. Derived: the
  printed constants may differ.

  Args:
    constants: mu, L, sigma_A, sigma_c.
    epsilon: eps, with 0 <= eps <= 1 - e^{-K} and eps < 1.

  Returns:
    The bound.

  Raises:
    ValueError: If `epsilon` is not in [0, 1).
  """
  arguments.check_decay('epsilon', epsilon)
  quotient = epsilon / (1.0 - epsilon)
  return quotient * constants.condition_number * constants.heterogeneity


def path_bound(
    constants: quadratics.PopulationConstants,
    num_steps: int,
    first_rate: float,
    second_rate: float,
) -> float:
  """Returns a bound on ||x*_{gamma_1} - x*_{gamma_2}|| (Theorem 21).

      ((phi_L(gamma_1) - phi_L(gamma_2)) / phi_mu(gamma_1)) sigma_c
          (1 + phi_L(gamma_2) / phi_mu(gamma_2))

  with phi_lam = phi_{K,lam} and x*_gamma = x*(gamma, Theta_{1:K}). Derived: the
  quotient phi_L/phi_mu is in the text, the constants may differ.

  Args:
    constants: mu, L, sigma_A, sigma_c.
    num_steps: K.
    first_rate: gamma_1.
    second_rate: gamma_2, with gamma_1 <= gamma_2 < 1/L.

  Returns:
    The bound.

  Raises:
    ValueError: If an argument is out of its range.
  """
  mu, smoothness = constants.strong_convexity, constants.smoothness
  numerator = spectrum.phi_difference(
      num_steps, smoothness, first_rate, second_rate
  )
  quotient = spectrum.phi(num_steps, smoothness, second_rate) / spectrum.phi(
      num_steps, mu, second_rate
  )
  denominator = spectrum.phi(num_steps, mu, first_rate)
  return float(
      numerator / denominator * constants.center_deviation * (1.0 + quotient)
  )


def path_constant(
    constants: quadratics.PopulationConstants, num_steps: int
) -> float:
  """Returns C with ||x*_{gamma_1} - x*_{gamma_2}|| <= C |gamma_1 - gamma_2|.

      C = (K/2) kappa L (1 + kappa) sigma_c          (Corollary 22)

  for all rates below 1/L: along gamma_t = c/t successive minimizers of
  Theta_{1:K} are C c/(t (t + 1)) apart at most. House: the constant is chosen
  here, the printed one is lost.

  Args:
    constants: mu, L, sigma_A, sigma_c.
    num_steps: K.

  Returns:
    C.

  Raises:
    ValueError: If `num_steps` is not a whole number that is at least 1.
  """
  arguments.check_count('num_steps', num_steps)
  kappa = constants.condition_number
  return (
      num_steps / 2.0 * kappa * constants.smoothness * (1.0 + kappa)
      * constants.center_deviation
  )


def lipschitz_path_bound(
    constants: quadratics.PopulationConstants,
    num_steps: int,
    first_rate: float,
    second_rate: float,
) -> float:
  """Returns C |gamma_1 - gamma_2| of Corollary 22; see `path_constant`.

  Args:
    constants: mu, L, sigma_A, sigma_c.
    num_steps: K.
    first_rate: gamma_1 < 1/L.
    second_rate: gamma_2 < 1/L.

  Returns:
    The bound.

  Raises:
    ValueError: If an argument is out of its range.
  """
  for rate in (first_rate, second_rate):
    quadratics.check_below_inverse(rate, constants.smoothness)
  return path_constant(constants, num_steps) * abs(first_rate - second_rate)
