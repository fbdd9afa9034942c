"""The best gamma and the fewest steps, against brute force."""

import numpy as np
import pytest

from tff_localupdate.theory import quadratics
from tff_localupdate.theory import trade_off

CONSTANTS = quadratics.PopulationConstants(0.1, 1.0, 0.2, 0.02)
QUESTION = trade_off.Question(CONSTANTS, 10, 0.5, 500, 3.0)
SCHEDULES = (
    trade_off.constant_rates,
    trade_off.decaying_server_rate,
    trade_off.decaying_rates,
)


def test_grid_fills_the_admissible_rates():
  grid = trade_off.client_rate_grid(4.0, 10, 41)
  assert len(grid) == 41 and grid[0] == pytest.approx(1e-4 / (10 * 4.0))
  assert 0.24 < grid[-1] < 1.0 / 4.0
  np.testing.assert_allclose(grid[1:] / grid[:-1], grid[1] / grid[0])


@pytest.mark.parametrize('bound', SCHEDULES)
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
      trade_off.constant_rates, QUESTION, 10
  )
  assert 0.01 < found.client_learning_rate < 0.1
  assert found.error < trade_off.constant_rates(QUESTION, 10, 0.0).error


def test_best_of_each_num_steps():
  """V/mu_gamma^2 at gamma = 0 falls as 1/K if V grows like K."""
  found = trade_off.best_of_each_num_steps(QUESTION)
  steps = [bound.num_steps for bound in found]
  assert steps[0] == 1 and steps[-1] == 100 and 10 in steps
  assert steps == sorted(set(steps))
  errors = [bound.error for bound in found]
  assert errors == sorted(errors, reverse=True)
  expected = trade_off.best_client_rate(
      trade_off.constant_rates, QUESTION, 10
  )
  assert found[steps.index(10)] == expected


def test_fewest_steps_within_five_percent():
  bounds = [
      trade_off.ErrorBound(num_steps, 0.0, 0.1, error)
      for num_steps, error in ((1, 2.0), (5, 1.051), (9, 1.049), (20, 1.0))
  ]
  assert trade_off.fewest_steps(bounds).num_steps == 9
  assert trade_off.fewest_steps(bounds[:1]).num_steps == 1
