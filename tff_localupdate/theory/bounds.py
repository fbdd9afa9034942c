"""Section 6: how far apart the minimizers of the surrogate losses are.

Source: Charles and Konecny (2020), section 6, on quadratic losses. All
distances are Euclidean, phi_lam = phi_{K,lam}, x*_gamma = x*(gamma,
Theta_{1:K}), and x* = x*_0.

The idea of every bound is the identity of `surrogate.minimizer_shift`:
x*(gamma, Theta) - x* is an average of c_i - c, weighted by how far the
surrogate's Hessians, scaled to gamma = 0, are from the A_i. If all clients
share their minimizer (sigma_c = 0), nothing moves; else it moves by as much as
the spectrum of Q_i is bent between mu and L.

`constants` are mu, L, sigma_A, sigma_c of the population, `num_steps` is K,
every rate is gamma with 0 <= gamma < 1/L; else all functions raise ValueError.

Departures: the paper's printed constants are lost. What is marked derived was
derived anew along the surviving proofs, and house where a constant was chosen.
All of them hold, and are compared with exact distances in the tests; they may
be smaller or larger than the printed ones.
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

  For 0 < gamma < 1/L the surrogate loss at x, [d], for Theta_{1:K} grows with K
  to this value, so its minimizer tends to c, the mean of the clients'
  minimizers. The lemma does not say that c is farther from x* than the
  minimizers on the way, which is false.
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

  Derived. It is 0 if gamma = 0, Theta = Theta_1 or sigma_c = 0.
  """
  smoothness = constants.smoothness
  quadratics.check_below_inverse(client_learning_rate, smoothness)
  if not constants.heterogeneity:  # Whatever underflows below.
    return 0.0
  # The powers (1 - gamma L)^k = e^{k log_ratio}. 1 - s is summed by itself, by
  # expm1, which keeps its digits at small gamma.
  log_ratio = math.log1p(-client_learning_rate * smoothness)
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
  """Returns a bound on ||x*_gamma - x*|| (Theorem 17).

      ((K L - phi_L(gamma)) / phi_mu(gamma)) sigma_c (1 + sigma_A/mu)

  Derived: the surviving proof has the same terms.
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
  """Returns a bound on ||x*_gamma - x*|| (Corollary 19).

      (eps/(1 - eps)) (L/mu) sigma_c (1 + sigma_A/mu)

  for every gamma up to `convergence.max_linear_rate(eps, K, L)`, so 0 <= eps <=
  1 - e^{-K} and eps < 1. Derived.
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

  for `first_rate` gamma_1 <= `second_rate` gamma_2. Derived: the quotient
  phi_L/phi_mu is in the text.
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

      C = (K/2) kappa L (1 + kappa) sigma_c          (Corollary 22, house)

  for all rates below 1/L: along gamma_t = c/t successive minimizers are
  C c/(t (t + 1)) apart at most.
  """
  # From Theorem 21, with phi_L <= kappa phi_mu. The slope of phi_L is
  # -L^2 sum_j (j + 1) r^j over j <= K - 2, r = 1 - gamma L. Its falling weights
  # r^j give j + 1 a mean of at most K/2, so |phi_L'| <= L (K/2) phi_L.
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
  """Returns C |gamma_1 - gamma_2| of Corollary 22; see `path_constant`."""
  for rate in (first_rate, second_rate):
    quadratics.check_below_inverse(rate, constants.smoothness)
  return path_constant(constants, num_steps) * abs(first_rate - second_rate)
