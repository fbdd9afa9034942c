"""The constants of a population: checks, and what follows from them."""

import math

import pytest

from tff_localupdate.theory import quadratics


def test_derived_numbers():
  constants = quadratics.PopulationConstants(0.5, 3.0, 1.0, 2.0)
  assert constants.condition_number == 6.0
  assert constants.heterogeneity == 2.0 * (1.0 + 1.0 / 0.5)


@pytest.mark.parametrize(
    'arguments, name',
    [
        ((0.0, 1.0), 'strong_convexity'),
        ((-1.0, 1.0), 'strong_convexity'),
        ((math.nan, 1.0), 'strong_convexity'),
        ((1.0, math.inf), 'smoothness'),
        ((2.0, 1.0), 'smoothness'),
        ((1.0, 2.0, -1.0), 'hessian_deviation'),
        ((1.0, 2.0, 0.0, math.nan), 'center_deviation'),
    ],
)
def test_refused(arguments, name):
  with pytest.raises(ValueError, match=name):
    quadratics.PopulationConstants(*arguments)


def test_rate_must_be_below_the_inverse():
  quadratics.check_below_inverse(0.24, 2.0, factor=2.0)
  with pytest.raises(ValueError, match='client_learning_rate must be below'):
    quadratics.check_below_inverse(0.25, 2.0, factor=2.0)
  with pytest.raises(ValueError, match='client_learning_rate'):
    quadratics.check_below_inverse(-0.1, 2.0)
