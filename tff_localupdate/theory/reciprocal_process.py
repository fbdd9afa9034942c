"""LocalUpdate on the populations of `reciprocal`: exact moments, and runs.

The iterates are x_{t+1} = x_t - eta q_t with q_t the mean of M independent
clients' updates, as in Figure 1, where M = 1.
"""

import fractions
import math

import numpy as np

from tff_localupdate import arguments
from tff_localupdate import theta as theta_lib
from tff_localupdate.theory import reciprocal


def expected_iterates(
    law: reciprocal.UpdateLaw,
    server_learning_rate: float,
    start: float,
    num_rounds: int,
) -> np.ndarray:
  """Returns E x_1, ..., E x_{T+1} of the process, whatever M is.

      E x_{t+1} - x*(gamma, Theta) = (1 - eta E a)(E x_t - x*(gamma, Theta))

  Args:
    law: The moments of an update.
    server_learning_rate: eta.
    start: x_1.
    num_rounds: T.

  Returns:
    The means, float64 [T + 1].

  Raises:
    ValueError: If `server_learning_rate` is negative.
  """
  arguments.check_not_negative('server_learning_rate', server_learning_rate)
  contraction = 1.0 - server_learning_rate * float(law.slope)
  powers = contraction ** np.arange(num_rounds + 1)
  minimizer = float(law.minimizer)
  return minimizer + powers * (start - minimizer)


def squared_distances(
    law: reciprocal.UpdateLaw,
    server_learning_rate: float,
    start: float,
    num_rounds: int,
    clients_per_round: int = 1,
) -> np.ndarray:
  """Returns E (x_t - x*(gamma, Theta))^2 for t = 1, ..., T + 1.

  With e = x - x*(gamma, Theta), rho = 1 - eta E a:

      E e_{t+1}^2 = rho^2 E e_t^2
          + (eta^2/M) (Var a E e_t^2 + 2 Cov(a, r) E e_t + Var r)

  Args:
    law: The moments of an update.
    server_learning_rate: eta.
    start: x_1.
    num_rounds: T.
    clients_per_round: M, clients drawn independently.

  Returns:
    The second moments, float64 [T + 1].

  Raises:
    ValueError: If an argument is out of its range.
  """
  arguments.check_count('clients_per_round', clients_per_round)
  means = expected_iterates(law, server_learning_rate, start, num_rounds)
  means -= float(law.minimizer)
  contraction = 1.0 - server_learning_rate * float(law.slope)
  scale = server_learning_rate**2 / clients_per_round
  squares = [means[0] ** 2]
  for mean in means[:-1]:
    noise = (
        float(law.slope_variance) * squares[-1]
        + 2.0 * float(law.covariance) * mean
        + float(law.noise)
    )
    squares.append(contraction**2 * squares[-1] + scale * noise)
  return np.array(squares)


def stationary_variance(
    law: reciprocal.UpdateLaw,
    server_learning_rate: reciprocal.Rational,
    clients_per_round: int = 1,
) -> fractions.Fraction:
  """Returns the variance to which that of x_t tends.

      (eta^2/M) Var r / (1 - (1 - eta E a)^2 - (eta^2/M) Var a)

  Args:
    law: The moments of an update.
    server_learning_rate: eta.
    clients_per_round: M, clients drawn independently.

  Returns:
    The variance, an exact fraction.

  Raises:
    ValueError: If it does not settle, because eta is 0 or too large.
  """
  arguments.check_count('clients_per_round', clients_per_round)
  eta = fractions.Fraction(server_learning_rate)
  scale = eta**2 / clients_per_round
  denominator = 1 - (1 - eta * law.slope) ** 2 - scale * law.slope_variance
  if denominator <= 0:
    raise ValueError(
        'server_learning_rate must let the variance settle, found '
        f'{server_learning_rate}.'
    )
  return scale * law.noise / denominator


def tail_mean_error(
    law: reciprocal.UpdateLaw,
    server_learning_rate: reciprocal.Rational,
    num_averaged: int,
    clients_per_round: int = 1,
) -> float:
  """Returns the standard error of the mean of n successive iterates.

  Once the iterates are stationary with variance v, those s rounds apart have
  the covariance v rho^s, rho = 1 - eta E a, so the variance of the mean is

      (v/n) (1 + (2/n) sum_{s=1}^{n-1} (n - s) rho^s)

  Args:
    law: The moments of an update.
    server_learning_rate: eta.
    num_averaged: n.
    clients_per_round: M, clients drawn independently.

  Returns:
    The standard error.

  Raises:
    ValueError: If an argument is out of its range.
  """
  arguments.check_count('num_averaged', num_averaged)
  variance = float(
      stationary_variance(law, server_learning_rate, clients_per_round)
  )
  rho = 1.0 - float(fractions.Fraction(server_learning_rate) * law.slope)
  # A sum: its closed form cancels where rho is nearly 1.
  apart = np.arange(1, num_averaged)
  shared = np.dot(num_averaged - apart, rho**apart)
  factor = 1.0 + 2.0 * shared / num_averaged
  return math.sqrt(variance / num_averaged * factor)


def simulate(
    population: reciprocal.ReciprocalPopulation,
    theta: theta_lib.Theta,
    *,
    client_learning_rate: float,
    server_learning_rate: float,
    start: float,
    num_rounds: int,
    clients_per_round: int = 1,
    seed: int = 0,
) -> np.ndarray:
  """Runs LocalUpdate itself, Algorithms 1 and 2, on drawn clients.

  Every point of an inner loop is an affine function of x_t. So the inner loops
  of all rounds and clients run at once, on the two coefficients of that
  function, before the rounds run one after the other.

  Args:
    population: The distribution of z.
    theta: The Theta weights.
    client_learning_rate: gamma.
    server_learning_rate: eta.
    start: x_1.
    num_rounds: T.
    clients_per_round: M, clients drawn independently.
    seed: Of the draws. Runs that differ in rates or Theta draw the same
      clients.

  Returns:
    x_1, ..., x_{T+1}, float64 [T + 1].
  """
  uniform = np.random.default_rng(seed).random((num_rounds, clients_per_round))
  z = population.quantile(uniform)
  # The point is scale x_t + shift, the update update_scale x_t + update_shift.
  scale, shift = np.ones_like(z), np.zeros_like(z)
  update_scale, update_shift = np.zeros_like(z), np.zeros_like(z)
  for weight in theta.weights:
    gradient_scale, gradient_shift = z * scale, z * shift - 1.0
    update_scale += weight * gradient_scale
    update_shift += weight * gradient_shift
    scale -= client_learning_rate * gradient_scale
    shift -= client_learning_rate * gradient_shift
  iterates = [float(start)]
  for slope, offset in zip(
      update_scale.mean(axis=1).tolist(), update_shift.mean(axis=1).tolist()
  ):
    update = slope * iterates[-1] + offset
    iterates.append(iterates[-1] - server_learning_rate * update)
  return np.array(iterates)
