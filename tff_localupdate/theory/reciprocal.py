"""Section 4: clients on a line, of which everything is known exactly.

Each client is one number z > 0 with the loss f(x; z) = z x^2/2 - x, so its
Hessian is z and its minimizer 1/z. Then a client's update and the minimizer of
the surrogate loss,

    q = Q(z) (z x - 1),   Q(z) = sum_k theta_k (1 - gamma z)^{k-1}
    x*(gamma, Theta) = E[Q(z)] / E[z Q(z)]

come from moments of z alone, since Q is a polynomial. Rates are taken as the
exact fractions that they are (a float too is one), and minimizers are exact
fractions.

The process is x_{t+1} = x_t - eta q_t with q_t the mean of M independent
clients' updates, as in Figure 1, where M = 1. Given x_t it is affine in x_t
with random coefficients, so its first two moments follow recursions in closed
form.

Source: Charles and Konecny (2020), section 4 and Figure 1.

`law` holds the moments of an update, `client_learning_rate` is gamma,
`server_learning_rate` eta, `start` x_1, `num_rounds` T, `clients_per_round` M.
All functions raise ValueError if one of them is out of its range.
"""

from collections.abc import Callable
import dataclasses
import fractions
import math
from typing import NamedTuple, Union

import numpy as np

from tff_localupdate import arguments
from tff_localupdate import theta as theta_lib

Rational = Union[int, float, fractions.Fraction]


@dataclasses.dataclass(frozen=True)
class ReciprocalPopulation:
  """A distribution of z.

  Attributes:
    moment: Maps m >= -1 to E z^m, an exact fraction.
    quantile: Maps u in [0, 1), an array, to z: z of a uniform u is a sample.
    smoothness: L, the largest z.
  """

  moment: Callable[[int], fractions.Fraction]
  quantile: Callable[[np.ndarray], np.ndarray]
  smoothness: fractions.Fraction

  @property
  def minimizer(self) -> fractions.Fraction:
    """x* = 1/E z."""
    return 1 / self.moment(1)

  @property
  def mean_center(self) -> fractions.Fraction:
    """c = E[1/z], where the surrogate minimizers of Theta_{1:K} tend to."""
    return self.moment(-1)


def _linear_density_moment(power: int) -> fractions.Fraction:
  """E z^m = (8/15) (2^{m+2} - 2^{-m-2})/(m + 2)."""
  end = fractions.Fraction(2) ** (power + 2)
  return fractions.Fraction(8, 15) * (end - 1 / end) / (power + 2)


# Clients z = 1 and z = 2, equally likely: x* = 2/3, c = 3/4.
TWO_CLIENTS = ReciprocalPopulation(
    moment=lambda power: (1 + fractions.Fraction(2) ** power) / 2,
    quantile=lambda u: np.where(np.asarray(u) < 0.5, 1.0, 2.0),
    smoothness=fractions.Fraction(2),
)

# The population of Figure 1, density 8 z/15 on [1/2, 2]: x* = 5/7, c = 4/5.
LINEAR_DENSITY = ReciprocalPopulation(
    moment=_linear_density_moment,
    quantile=lambda u: np.sqrt(0.25 + 3.75 * np.asarray(u)),
    smoothness=fractions.Fraction(2),
)


class UpdateLaw(NamedTuple):
  """The moments of one client's q = a x - b, with a = z Q(z) and b = Q(z).

  About x*(gamma, Theta): q = a (x - x*) + r, where E r = 0.

  Attributes:
    minimizer: x*(gamma, Theta) = E b/E a.
    slope: E a, the second derivative of the surrogate loss.
    slope_variance: Var a.
    covariance: Cov(a, r).
    noise: Var r, the variance of q at x*(gamma, Theta).
  """

  minimizer: fractions.Fraction
  slope: fractions.Fraction
  slope_variance: fractions.Fraction
  covariance: fractions.Fraction
  noise: fractions.Fraction


def update_law(
    population: ReciprocalPopulation,
    theta: theta_lib.Theta,
    client_learning_rate: Rational,
) -> UpdateLaw:
  """Returns the exact moments of the update of a random client.

  Raises ValueError also if the surrogate loss is not strictly convex.
  """
  arguments.check_not_negative('client_learning_rate', client_learning_rate)
  gamma = fractions.Fraction(client_learning_rate)
  # Q and Q^2 as polynomials in z: every moment below is a sum of moments of z.
  factor = _update_polynomial(theta, gamma)
  square = _multiply(factor, factor)
  slope = _expectation(population, factor, 1)
  if slope <= 0:
    raise ValueError(
        'client_learning_rate must leave the surrogate loss strictly convex, '
        f'found {client_learning_rate} with the second derivative {slope}.'
    )
  minimizer = _expectation(population, factor, 0) / slope
  # About the minimizer, q = a (x - x*) + r with r = a x* - b and E r = 0.
  # E[Q^2 z^m] for m = 0, 1, 2 give all second moments of a = z Q and b = Q.
  bb, ab, aa = (_expectation(population, square, m) for m in range(3))
  return UpdateLaw(
      minimizer=minimizer,
      slope=slope,
      slope_variance=aa - slope**2,
      covariance=aa * minimizer - ab,
      noise=aa * minimizer**2 - 2 * ab * minimizer + bb,
  )


def surrogate_minimizer(
    population: ReciprocalPopulation,
    theta: theta_lib.Theta,
    client_learning_rate: Rational,
) -> fractions.Fraction:
  """Returns x*(gamma, Theta) as an exact fraction; see `update_law`."""
  return update_law(population, theta, client_learning_rate).minimizer


def expected_iterates(
    law: UpdateLaw,
    server_learning_rate: float,
    start: float,
    num_rounds: int,
) -> np.ndarray:
  """Returns E x_1, ..., E x_{T+1}, float64 [T + 1], whatever M is.

      E x_{t+1} - x*(gamma, Theta) = (1 - eta E a)(E x_t - x*(gamma, Theta))
  """
  arguments.check_not_negative('server_learning_rate', server_learning_rate)
  contraction = 1.0 - server_learning_rate * float(law.slope)
  powers = contraction ** np.arange(num_rounds + 1)
  minimizer = float(law.minimizer)
  return minimizer + powers * (start - minimizer)


def squared_distances(
    law: UpdateLaw,
    server_learning_rate: float,
    start: float,
    num_rounds: int,
    clients_per_round: int = 1,
) -> np.ndarray:
  """Returns E (x_t - x*(gamma, Theta))^2 of x_1, ..., x_{T+1}, float64.

  With e = x - x*(gamma, Theta), rho = 1 - eta E a:

      E e_{t+1}^2 = rho^2 E e_t^2
          + (eta^2/M) (Var a E e_t^2 + 2 Cov(a, r) E e_t + Var r)
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
    law: UpdateLaw,
    server_learning_rate: Rational,
    clients_per_round: int = 1,
) -> fractions.Fraction:
  """Returns the variance to which that of x_t tends, an exact fraction.

      (eta^2/M) Var r / (1 - (1 - eta E a)^2 - (eta^2/M) Var a)

  Raises ValueError also if it does not settle: eta is 0 or too large.
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
    law: UpdateLaw,
    server_learning_rate: Rational,
    num_averaged: int,
    clients_per_round: int = 1,
) -> float:
  """Returns the standard error of the mean of n = `num_averaged` last iterates.

  Once the iterates are stationary with variance v, those s rounds apart have
  the covariance v rho^s, rho = 1 - eta E a, so the variance of the mean is

      (v/n) (1 + (2/n) sum_{s=1}^{n-1} (n - s) rho^s)
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
    population: ReciprocalPopulation,
    theta: theta_lib.Theta,
    *,
    client_learning_rate: float,
    server_learning_rate: float,
    start: float,
    num_rounds: int,
    clients_per_round: int = 1,
    seed: int = 0,
) -> np.ndarray:
  """Runs LocalUpdate itself on drawn clients; returns x_1, ..., x_{T+1}.

  Runs of one `seed` that differ in rates or Theta draw the same clients.
  """
  uniform = np.random.default_rng(seed).random((num_rounds, clients_per_round))
  z = population.quantile(uniform)
  # Every point of an inner loop is an affine function of x_t. So the inner
  # loops of all rounds and clients run at once, on the two coefficients of that
  # function, before the rounds run one after the other. The point is
  # scale x_t + shift, the update update_scale x_t + update_shift.
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


def _update_polynomial(theta, gamma):
  """The coefficients of Q(z), of z^0 first."""
  coefficients = [fractions.Fraction(0)]
  for weight in reversed(theta.weights):
    coefficients = _multiply([fractions.Fraction(1), -gamma], coefficients)
    coefficients[0] += fractions.Fraction(weight)
  return coefficients


def _multiply(first, second):
  product = [fractions.Fraction(0)] * (len(first) + len(second) - 1)
  for i, a in enumerate(first):
    for j, b in enumerate(second):
      product[i + j] += a * b
  return product


def _expectation(population, coefficients, shift):
  """E[p(z) z^shift] for the polynomial p with these coefficients."""
  return sum(
      coefficient * population.moment(power + shift)
      for power, coefficient in enumerate(coefficients)
  )
