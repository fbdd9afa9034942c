"""Section 4: populations on a line whose surrogate minimizers are rational.

Each client is one number z > 0 with the loss f(x; z) = z x^2/2 - x, so its
Hessian is z and its minimizer 1/z. Then

    q = Q(z) (z x - 1),   Q(z) = sum_k theta_k (1 - gamma z)^{k-1}
    x*(gamma, Theta) = E[Q(z)] / E[z Q(z)]

are sums of moments of z. Rates are taken as the exact fractions that they are
(a float too is one), and results are exact fractions.
"""

from collections.abc import Callable
import dataclasses
import fractions
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

  Args:
    population: The distribution of z.
    theta: The Theta weights.
    client_learning_rate: gamma.

  Returns:
    The `UpdateLaw`.

  Raises:
    ValueError: If gamma is negative, or so large that the surrogate loss is not
      strictly convex.
  """
  arguments.check_not_negative('client_learning_rate', client_learning_rate)
  gamma = fractions.Fraction(client_learning_rate)
  factor = _update_polynomial(theta, gamma)
  square = _multiply(factor, factor)
  slope = _expectation(population, factor, 1)
  if slope <= 0:
    raise ValueError(
        'client_learning_rate must leave the surrogate loss strictly convex, '
        f'found {client_learning_rate} with the second derivative {slope}.'
    )
  minimizer = _expectation(population, factor, 0) / slope
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
