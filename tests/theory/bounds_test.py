"""Section 6: the bounds by value, and over exact distances."""

import math

import numpy as np
import pytest

from tests.theory import cases
from tff_localupdate import theta as theta_lib
from tff_localupdate.theory import bounds
from tff_localupdate.theory import convergence
from tff_localupdate.theory import quadratics
from tff_localupdate.theory import surrogate

Theta = theta_lib.Theta
CONSTANTS = quadratics.PopulationConstants(0.5, 3.0, 1.0, 2.0)
K = 5


def test_g12_theorem_16():
  assert bounds.distance_bound(CONSTANTS, Theta.ones(K), 0.2) == pytest.approx(
      73.1173617847, abs=1e-9
  )


def test_g12_theorem_17():
  assert bounds.fed_avg_distance_bound(CONSTANTS, K, 0.2) == pytest.approx(
      29.4533466826, abs=1e-9
  )


def test_g12_theorem_21():
  assert bounds.path_bound(CONSTANTS, K, 0.1, 0.2) == pytest.approx(
      10.1819776760, abs=1e-9
  )


def test_g12_corollary_22():
  assert bounds.lipschitz_path_bound(CONSTANTS, K, 0.1, 0.2) == pytest.approx(
      63.0, abs=1e-9
  )


def _gap(population, theta, rate):
  return np.linalg.norm(surrogate.minimizer_shift(population, theta, rate))


def test_every_distance_bound_on_random_populations():
  """Theorems 16, 17, 21, Corollaries 19, 22; how tight they are at best."""
  tightest = {}

  def check(name, distance, bound):
    assert distance <= bound * (1.0 + 1e-9) + 1e-12, name
    if bound > 0.0:
      tightest[name] = max(tightest.get(name, 0.0), distance / bound)

  for case in range(cases.NUM_CASES):
    population = cases.random_population(case)
    constants = population.constants
    smoothness = constants.smoothness
    theta = cases.random_theta(case)
    rate = cases.random_rate(case, constants)
    check('16', _gap(population, theta, rate),
          bounds.distance_bound(constants, theta, rate))
    num_steps = theta.num_steps
    ones = Theta.ones(num_steps)
    check('17', _gap(population, ones, rate),
          bounds.fed_avg_distance_bound(constants, num_steps, rate))
    epsilon = convergence.min_epsilon(rate, num_steps, smoothness)
    check('19', _gap(population, ones, rate),
          bounds.linear_rate_distance_bound(constants, epsilon))
    first = rate * np.random.default_rng([2, case]).uniform()
    distance = np.linalg.norm(
        surrogate.minimizer_shift(population, ones, rate)
        - surrogate.minimizer_shift(population, ones, first)
    )
    check('21', distance,
          bounds.path_bound(constants, num_steps, first, rate))
    check('22', distance,
          bounds.lipschitz_path_bound(constants, num_steps, rate, first))
  # They are bounds and no estimates: none is reached, none is absurd.
  assert set(tightest) == {'16', '17', '19', '21', '22'}
  for name, ratio in tightest.items():
    assert 0.005 < ratio < 1.0, (name, ratio)


def test_lemma_15_on_random_populations():
  for case in range(cases.NUM_CASES):
    population = cases.random_population(case)
    rng = np.random.default_rng([3, case])
    rate = rng.uniform(0.01, 0.99) / population.constants.smoothness
    x = rng.normal(size=population.dimension)
    limit = bounds.surrogate_loss_limit(population, x, rate)
    losses = [
        surrogate.surrogate_loss(population, x, Theta.ones(k), rate)
        for k in (1, 2, 5, 20, 100)
    ]
    assert np.all(np.diff(losses) >= -1e-12 * limit)
    assert losses[-1] <= limit * (1.0 + 1e-12)


def test_lemma_15_is_reached_with_many_steps():
  population = cases.spec_population()
  loss = surrogate.surrogate_loss(population, cases.X, Theta.ones(2000), 0.3)
  assert loss == pytest.approx(
      bounds.surrogate_loss_limit(population, cases.X, 0.3), rel=1e-12
  )


def test_bounds_vanish_where_the_distance_does():
  assert bounds.distance_bound(CONSTANTS, Theta.ones(K), 0.0) == 0.0
  assert bounds.distance_bound(CONSTANTS, Theta.ones(1), 0.3) == 0.0
  assert bounds.fed_avg_distance_bound(CONSTANTS, K, 0.0) == 0.0
  assert bounds.path_bound(CONSTANTS, K, 0.1, 0.1) == 0.0
  same_center = quadratics.PopulationConstants(0.5, 3.0, 1.0, 0.0)
  assert bounds.distance_bound(same_center, Theta.single(K), 0.3) == 0.0


def test_bounds_keep_their_digits_at_tiny_rates():
  for rate in (1e-12, 1e-200):
    assert bounds.fed_avg_distance_bound(CONSTANTS, K, rate) / rate == (
        pytest.approx(10 * 9.0 / 2.5 * 6.0, rel=1e-9)
    )
    assert bounds.distance_bound(CONSTANTS, Theta.ones(K), rate) / rate == (
        pytest.approx(6.0 * 2 * 3.0 * 6.0, rel=1e-9)
    )


def test_power_that_underflows_gives_no_bound():
  assert bounds.distance_bound(
      CONSTANTS, Theta.single(5000), 0.33
  ) == math.inf


def test_refused():
  with pytest.raises(ValueError, match='client_learning_rate must be below'):
    bounds.distance_bound(CONSTANTS, Theta.ones(K), 1 / 3)
  with pytest.raises(ValueError, match='client_learning_rate'):
    bounds.fed_avg_distance_bound(CONSTANTS, K, 0.4)
  with pytest.raises(ValueError, match='client_learning_rate'):
    bounds.lipschitz_path_bound(CONSTANTS, K, 0.1, 0.4)
  with pytest.raises(ValueError, match='epsilon'):
    bounds.linear_rate_distance_bound(CONSTANTS, 1.0)
  with pytest.raises(ValueError, match='client_learning_rate'):
    bounds.surrogate_loss_limit(cases.spec_population(), cases.X, 0.0)
  with pytest.raises(ValueError, match='num_steps'):
    bounds.path_constant(CONSTANTS, 0)


def test_no_heterogeneity_is_no_distance_whatever_underflows():
  alike = quadratics.PopulationConstants(1.0, 1.0)
  assert bounds.distance_bound(alike, Theta.single(22), 1 - 1e-15) == 0.0
