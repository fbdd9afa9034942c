"""Section 4: moments and minimizers, exact."""

from fractions import Fraction

import numpy as np
import pytest

from tff_localupdate import theta as theta_lib
from tff_localupdate.theory import reciprocal

Theta = theta_lib.Theta
FIGURE_1 = reciprocal.LINEAR_DENSITY
TWO_CLIENTS = reciprocal.TWO_CLIENTS


def _integrate(fn):
  """The mean of `fn` under the density 8 z/15 on [1/2, 2], by quadrature."""
  nodes, weights = np.polynomial.legendre.leggauss(60)
  z = 1.25 + 0.75 * nodes
  return np.sum(0.75 * weights * 8.0 * z / 15.0 * fn(z))


@pytest.mark.parametrize(
    'rate, expected',
    [
        (Fraction(1, 4), 0.7829627662),
        (Fraction(1, 2), 0.7979469807),
        (1, 0.8284934081),
        (Fraction(11, 10), 1.2607462097),
    ],
)
def test_g26_minimizers_of_figure_1(rate, expected):
  found = reciprocal.surrogate_minimizer(FIGURE_1, Theta.ones(10), rate)
  assert isinstance(found, Fraction)
  assert float(found) == pytest.approx(expected, abs=1e-9)


def test_limits_of_figure_1():
  assert FIGURE_1.minimizer == Fraction(5, 7)
  assert FIGURE_1.mean_center == Fraction(4, 5)
  assert FIGURE_1.moment(0) == 1
  assert reciprocal.surrogate_minimizer(
      FIGURE_1, Theta.ones(10), 0) == Fraction(5, 7)
  assert reciprocal.surrogate_minimizer(
      FIGURE_1, Theta.ones(1), Fraction(1, 3)) == Fraction(5, 7)
  assert float(reciprocal.surrogate_minimizer(
      FIGURE_1, Theta.ones(120), Fraction(1, 4))) == pytest.approx(
          0.8, abs=1e-8)


def test_moments_of_figure_1_by_quadrature():
  for power in (-1, 1, 2, 5, 20):
    assert float(FIGURE_1.moment(power)) == pytest.approx(
        _integrate(lambda z, power=power: z**power), rel=1e-12
    )


def test_sampler_of_figure_1_has_its_moments():
  u = (np.arange(200_000) + 0.5) / 200_000
  z = FIGURE_1.quantile(u)
  assert z.min() >= 0.5 and z.max() <= 2.0
  for power in (-1, 1, 3):
    assert np.mean(z**power) == pytest.approx(
        float(FIGURE_1.moment(power)), rel=1e-6
    )


def test_two_clients_in_closed_form():
  for rate in (Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(11, 10)):
    found = reciprocal.surrogate_minimizer(TWO_CLIENTS, Theta.ones(2), rate)
    assert found == (4 - 3 * rate) / (6 - 5 * rate)
    assert found - TWO_CLIENTS.minimizer == rate / (3 * (6 - 5 * rate))
  assert TWO_CLIENTS.minimizer == Fraction(2, 3)
  assert TWO_CLIENTS.mean_center == Fraction(3, 4)


def test_two_clients_at_one_half_for_any_number_of_steps():
  gaps = []
  for num_steps in range(1, 12):
    found = reciprocal.surrogate_minimizer(
        TWO_CLIENTS, Theta.ones(num_steps), Fraction(1, 2)
    )
    power = Fraction(2) ** (1 - num_steps)
    assert found == (3 - power) / (4 - power)
    gaps.append(found - Fraction(2, 3))
  assert gaps[0] == 0 and gaps == sorted(gaps) and gaps[-1] < Fraction(1, 12)


def test_two_clients_may_disagree_in_sign():
  """A rate in (1, 6/5): client 2 is concave, the surrogate still convex."""
  law = reciprocal.update_law(TWO_CLIENTS, Theta.ones(2), Fraction(11, 10))
  assert law.slope == 3 - Fraction(5, 2) * Fraction(11, 10) > 0
  assert 2 - 2 * Fraction(11, 10) < 0
  with pytest.raises(ValueError, match='strictly convex'):
    reciprocal.update_law(TWO_CLIENTS, Theta.ones(2), Fraction(6, 5))
  with pytest.raises(ValueError, match='client_learning_rate'):
    reciprocal.update_law(TWO_CLIENTS, Theta.ones(2), -1)


@pytest.mark.parametrize('rate', [0.0, 0.3, 1.0])
def test_law_by_quadrature(rate):
  theta = Theta((1.0, 0.5, 2.0))
  law = reciprocal.update_law(FIGURE_1, theta, rate)

  def factor(z):
    return 1.0 + 0.5 * (1 - rate * z) + 2.0 * (1 - rate * z) ** 2

  slope = _integrate(lambda z: z * factor(z))
  minimizer = _integrate(factor) / slope

  def residual(z):
    return factor(z) * (z * minimizer - 1.0)

  expected = (
      minimizer,
      slope,
      _integrate(lambda z: (z * factor(z) - slope) ** 2),
      _integrate(lambda z: z * factor(z) * residual(z)),
      _integrate(lambda z: residual(z) ** 2),
  )
  assert [float(value) for value in law] == pytest.approx(expected)


@pytest.mark.parametrize('rate', [float('inf'), float('nan'), -1])
def test_rates_that_are_none(rate):
  with pytest.raises(ValueError, match='client_learning_rate must be a finite'):
    reciprocal.update_law(FIGURE_1, Theta.ones(2), rate)
