"""The bounds of the trade-off, and the rates and steps that make them least."""

import math

import numpy as np
import pytest

from tests.theory import cases
from tff_localupdate import theta as theta_lib
from tff_localupdate.theory import convergence
from tff_localupdate.theory import moments
from tff_localupdate.theory import quadratics
from tff_localupdate.theory import trade_off

CONSTANTS = quadratics.PopulationConstants(0.1, 1.0, 0.2, 0.02)
QUESTION = trade_off.Question(CONSTANTS, 10, 0.5, 500, 3.0)
SCHEDULES = (
    trade_off.constant_rates,
    trade_off.decaying_server_rate,
    trade_off.decaying_rates,
)


def _phi(num_steps, eigenvalue, gamma):
  return eigenvalue * sum(
      (1.0 - gamma * eigenvalue) ** k for k in range(num_steps)
  )


def _gap(gamma, num_steps=10):
  """Theorems 17 and 21 for CONSTANTS, as the specification has them."""
  mu, smoothness = (_phi(num_steps, lam, gamma) for lam in (0.1, 1.0))
  moved = num_steps * 1.0 - smoothness
  return min(
      moved / mu * 0.02 * (1.0 + 0.2 / 0.1),
      moved / (num_steps * 0.1) * 0.02 * (1.0 + smoothness / mu),
  )


@pytest.mark.parametrize('gamma', [0.0, 1e-3, 0.03, 0.5, 0.9])
def test_surrogate_distance(gamma):
  found = trade_off.surrogate_distance(CONSTANTS, 10, gamma)
  assert found == pytest.approx(_gap(gamma), rel=1e-12, abs=1e-15)


def test_surrogate_distance_takes_the_smaller_theorem():
  """Theorem 17 at small gamma; Theorem 21 where 1 + sigma_A/mu is larger."""
  mu, smoothness = (_phi(10, lam, 0.9) for lam in (0.1, 1.0))
  theorem_17 = (10.0 - smoothness) / mu * 0.02 * 3.0
  theorem_21 = (10.0 - smoothness) * 0.02 * (1.0 + smoothness / mu)
  assert theorem_21 < theorem_17
  found = trade_off.surrogate_distance(CONSTANTS, 10, 0.9)
  assert found == pytest.approx(theorem_21)


@pytest.mark.parametrize('horizon', [1, 7, 500, 10**9])
@pytest.mark.parametrize('distance', [1e-6, 1.0, 1e3])
@pytest.mark.parametrize('variance', [0.0, 1e-4, 10.0])
def test_best_server_rate_by_brute_force(horizon, distance, variance):
  mu, smoothness = 0.8, 5.0
  eta = trade_off.best_server_rate(
      (mu, smoothness), horizon, distance, variance
  )

  def bound(rate):
    power = np.exp(horizon * np.log1p(-rate * mu))
    return power * distance + rate * variance / mu * (1.0 - power)

  limit = mu / smoothness**2
  assert 0.0 < eta <= limit
  tried = bound(np.geomspace(1e-12, 1.0, 20_001) * limit)
  assert bound(eta) <= tried.min() * (1.0 + 1e-12)
  if variance == 0.0:
    assert eta == limit


def test_best_server_rate_if_one_step_reaches_the_minimizer():
  assert trade_off.best_server_rate((2.0, 2.0), 5, 1.0, 0.0) == 0.5
  assert trade_off.best_server_rate((2.0, 2.0), 1, 1.0, 1.0) == 0.5
  # T = 1: (1 - e) D^2 + e^2 V/mu^2 is least at e = D^2 mu^2/(2 V).
  found = trade_off.best_server_rate((2.0, 2.0), 1, 1.0, 8.0)
  assert 2.0 * found == pytest.approx(4.0 / 16.0)


def test_constant_rates_by_formula():
  found = trade_off.constant_rates(QUESTION, 10, 0.03)
  mu = _phi(10, 0.1, 0.03)
  power = (1.0 - found.server_learning_rate * mu) ** 500
  noise = found.server_learning_rate * 0.5 / mu * (1.0 - power)
  gap = _gap(0.03)
  expected = math.sqrt(power * (3.0 + gap) ** 2 + noise)
  assert found.optimisation == pytest.approx(expected)
  assert found.surrogate_distance == pytest.approx(gap)
  assert found.error == pytest.approx(gap + expected)
  assert found.offset is None


def test_decaying_server_rate_by_formula():
  found = trade_off.decaying_server_rate(QUESTION, 10, 0.03)
  mu, smoothness = (_phi(10, lam, 0.03) for lam in (0.1, 1.0))
  xi = 2.0 * (smoothness / mu) ** 2 - 1.0
  square = max(4.0 * 0.5 / mu**2, (1.0 + xi) * (3.0 + _gap(0.03)) ** 2)
  assert found.offset == pytest.approx(xi)
  assert found.server_learning_rate == pytest.approx(mu / smoothness**2)
  assert found.error == pytest.approx(
      _gap(0.03) + math.sqrt(square / (501.0 + xi))
  )


def test_decaying_rates_by_formula():
  found = trade_off.decaying_rates(QUESTION, 10, 0.03)
  mu = _phi(10, 0.1, 0.03)
  xi = 4.0 * (10.0 / mu) ** 2 - 1.0
  constant = 5.0 * 10.0 * 1.0 * 11.0 * 0.02
  nu = max(
      (1.0 + xi) * (3.0 + _gap(0.03)) ** 2,
      32.0 * 0.5 / mu**2 + (constant * 0.03) ** 2 * (1.0 + xi),
  )
  end = 0.03 * (1.0 + xi) / (501.0 + xi)
  expected = 2.0 * nu / (501.0 + xi) + 2.0 * (constant * end) ** 2
  assert found.error == pytest.approx(math.sqrt(expected))
  assert found.server_learning_rate == pytest.approx(4.0 / (mu * (1.0 + xi)))
  assert found.offset == pytest.approx(xi)
  assert found.surrogate_distance is None


def test_noise_grows_with_the_steps():
  assert QUESTION.variance_of(10) == 0.5
  assert QUESTION.variance_of(20) == 1.0
  square = trade_off.Question(CONSTANTS, 10, 0.5, 500, 3.0, 'square')
  assert square.variance_of(20) == 2.0


def test_extreme_numbers_stay_numbers():
  """What the command admits overflows nowhere."""
  for mu, smoothness, size in (
      (1e-20, 1e20, 1e20), (1e-20, 1e-20, 1e20), (1e20, 1e20, 1e-20)
  ):
    constants = quadratics.PopulationConstants(mu, smoothness, size, size)
    question = trade_off.Question(constants, 10_000, size, 10**9, size)
    for bound in SCHEDULES:
      for gamma in (0.0, 0.999 / smoothness):
        found = bound(question, 10_000, gamma)
        assert found.error >= 0.0 and found.server_learning_rate > 0.0


def _root_mean_square(population, bound, schedule):
  """Returns the exact error after T rounds at these rates, and the least V."""
  sampling = moments.RoundSampling(quadratics.examples_of(population), 2)
  start = population.minimizer + _offset(population)
  state = moments.start_at(start, population.minimizer)
  variance = 0.0
  for round_num in range(1, 31):
    factor = 1.0
    if bound.offset is not None:
      factor = (1.0 + bound.offset) / (round_num + bound.offset)
    gamma_factor = factor if schedule is trade_off.decaying_rates else 1.0
    result = moments.next_moments(
        state, sampling, theta=theta_lib.Theta.ones(bound.num_steps),
        client_learning_rate=gamma_factor * bound.client_learning_rate,
        server_learning_rate=factor * bound.server_learning_rate,
    )
    state = result.moments
    variance = max(variance, result.update_variance)
  return math.sqrt(state.distance_squared), variance


def _offset(population):
  return np.full(population.dimension, 0.5 / math.sqrt(population.dimension))


@pytest.mark.parametrize('schedule', SCHEDULES)
@pytest.mark.parametrize('case', range(6))
def test_bounds_hold_over_exact_moments(case, schedule):
  """With V at least what the process shows at the rates that V leads to."""
  population = cases.random_population(case)
  population = quadratics.QuadraticPopulation(
      population.hessians, population.centers
  )
  variance = 1.0
  for _ in range(20):
    question = trade_off.Question(
        population.constants, 3, variance, 30, 0.5
    )
    gamma = 0.3 / population.constants.smoothness
    bound = schedule(question, 3, gamma)
    error, least = _root_mean_square(population, bound, schedule)
    if least <= variance:
      break
    variance = 2.0 * least
  assert least <= variance
  assert 0.0 < error <= bound.error


def test_limit_on_the_server_rate_is_kept():
  for gamma in (0.0, 0.1, 0.9):
    limit = convergence.max_server_rate(CONSTANTS, 10, gamma)
    for bound in (trade_off.constant_rates, trade_off.decaying_server_rate):
      found = bound(QUESTION, 10, gamma).server_learning_rate
      assert 0.0 < found <= limit * (1.0 + 1e-12)


SEARCHED_CONSTANTS = quadratics.PopulationConstants(0.1, 1.0, 0.2, 0.02)
SEARCHED = trade_off.Question(SEARCHED_CONSTANTS, 10, 0.5, 500, 3.0)
SCHEDULES_OF_SEARCH = (
    trade_off.constant_rates,
    trade_off.decaying_server_rate,
    trade_off.decaying_rates,
)


def test_grid_fills_the_admissible_rates():
  grid = trade_off.client_rate_grid(4.0, 10, 41)
  assert len(grid) == 41 and grid[0] == pytest.approx(1e-4 / (10 * 4.0))
  assert 0.24 < grid[-1] < 1.0 / 4.0
  np.testing.assert_allclose(grid[1:] / grid[:-1], grid[1] / grid[0])


@pytest.mark.parametrize('bound', SCHEDULES_OF_SEARCH)
@pytest.mark.parametrize('center_deviation', [0.0, 0.02, 100.0])
def test_best_client_rate_by_brute_force(bound, center_deviation):
  constants = quadratics.PopulationConstants(0.1, 1.0, 0.2, center_deviation)
  question = trade_off.Question(constants, 10, 0.5, 500, 3.0)
  found = trade_off.best_client_rate(bound, question, 10)
  assert found == bound(question, 10, found.client_learning_rate)
  tried = [
      bound(question, 10, gamma).error
      for gamma in [0.0, *np.linspace(1e-5, 0.999, 500)]
  ]
  assert found.error <= min(tried) * (1.0 + 1e-6)
  if center_deviation == 100.0 and bound is trade_off.constant_rates:
    assert found.client_learning_rate == 0.0
  if center_deviation == 0.0 and bound is not trade_off.decaying_rates:
    assert found.client_learning_rate > 0.0


def test_best_rate_lies_inside_for_the_question():
  found = trade_off.best_client_rate(
      trade_off.constant_rates, SEARCHED, 10
  )
  assert 0.01 < found.client_learning_rate < 0.1
  assert found.error < trade_off.constant_rates(SEARCHED, 10, 0.0).error


def test_best_of_each_num_steps():
  """V/mu_gamma^2 at gamma = 0 falls as 1/K if V grows like K."""
  found = trade_off.best_of_each_num_steps(SEARCHED)
  steps = [bound.num_steps for bound in found]
  assert steps[0] == 1 and steps[-1] == 100 and 10 in steps
  assert steps == sorted(set(steps))
  errors = [bound.error for bound in found]
  assert errors == sorted(errors, reverse=True)
  expected = trade_off.best_client_rate(
      trade_off.constant_rates, SEARCHED, 10
  )
  assert found[steps.index(10)] == expected


def test_fewest_steps_within_five_percent():
  bounds = [
      trade_off.ErrorBound(num_steps, 0.0, 0.1, error)
      for num_steps, error in ((1, 2.0), (5, 1.051), (9, 1.049), (20, 1.0))
  ]
  assert trade_off.fewest_steps(bounds).num_steps == 9
  assert trade_off.fewest_steps(bounds[:1]).num_steps == 1
