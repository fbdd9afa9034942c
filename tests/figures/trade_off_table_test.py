"""The recommendations, row by row, and the bounds behind them."""

import math

import pytest

from baselines.figures import trade_off_table
from tff_localupdate.theory import convergence
from tff_localupdate.theory import quadratics
from tff_localupdate.theory import spectrum
from tff_localupdate.theory import trade_off
from tff_localupdate.theta import Theta

CONSTANTS = quadratics.PopulationConstants(0.1, 1.0, 0.2, 0.02)
QUESTION = trade_off.Question(CONSTANTS, 10, 0.5, 500, 3.0)


@pytest.fixture(name='rows', scope='module')
def _rows():
  best_of_each = trade_off.best_of_each_num_steps(QUESTION)
  table = trade_off_table.advice_table(QUESTION, best_of_each, 0.5)
  assert set(table) == {
      *trade_off_table.ADVICE, *trade_off_table.DISTANCES
  }
  return table.set_index('choice')


def test_g12_distance_bounds():
  constants = quadratics.PopulationConstants(0.5, 3.0, 1.0, 2.0)
  found = trade_off_table.distance_bounds(constants, 5, 0.2)
  assert found['theorem_16'] == pytest.approx(73.1173617847, abs=1e-9)
  assert found['theorem_17'] == pytest.approx(29.4533466826, abs=1e-9)
  # (eps/(1 - eps)) kappa sigma_c (1 + sigma_A/mu), eps/(1 - eps) = e^{gKL} - 1.
  assert found['corollary_19'] == pytest.approx(
      math.expm1(0.2 * 5 * 3.0) * 6.0 * 2.0 * 3.0
  )
  phi_l, phi_mu = ((1.0 - (1.0 - 0.2 * lam) ** 5) / 0.2 for lam in (3.0, 0.5))
  assert found['theorem_21'] == pytest.approx(
      (15.0 - phi_l) / 2.5 * 2.0 * (1.0 + phi_l / phi_mu)
  )


def test_distance_bounds_at_their_ends():
  found = trade_off_table.distance_bounds(CONSTANTS, 10, 0.0)
  assert [str(value) for value in found.values()] == ['0.0'] * 4
  found = trade_off_table.distance_bounds(CONSTANTS, 10_000, 0.9)
  assert found['corollary_19'] == math.inf and 0.0 < found['theorem_17']
  same = quadratics.PopulationConstants(0.1, 1.0)
  found = trade_off_table.distance_bounds(same, 10_000, 0.9)
  assert list(found.values()) == [0.0] * 4


def test_rows_are_the_choices(rows):
  assert list(rows.index) == [
      'gamma = 0', 'best gamma', 'best gamma, eta decays',
      'best gamma, both decay', 'best gamma and K', 'given gamma',
  ]
  expected = trade_off.best_client_rate(
      trade_off.constant_rates, QUESTION, 10
  )
  row = rows.loc['best gamma']
  assert row.client_learning_rate == expected.client_learning_rate
  assert row.server_learning_rate == expected.server_learning_rate
  assert row.error == expected.error
  assert rows.loc['gamma = 0'].client_learning_rate == 0.0
  assert rows.loc['given gamma'].client_learning_rate == 0.5
  assert rows.loc['best gamma'].error <= rows.loc['gamma = 0'].error
  assert rows.loc['best gamma'].error <= rows.loc['given gamma'].error


def test_steps_recommended_are_the_fewest_that_do(rows):
  row = rows.loc['best gamma and K']
  best_of_each = trade_off.best_of_each_num_steps(QUESTION)
  least = min(bound.error for bound in best_of_each)
  assert row.num_steps > 10 and row.error <= 1.05 * least
  for bound in best_of_each:
    if bound.num_steps < row.num_steps:
      assert bound.error > 1.05 * least


def test_bounds_are_named_and_house_forms_said(rows):
  assert rows.loc['gamma = 0'].bounds == 'Theorem 26'
  assert rows.loc['best gamma'].bounds == 'Theorem 26 and 17'
  assert rows.loc['given gamma'].bounds == 'Theorem 26 and 21'
  assert rows.loc['best gamma, eta decays'].bounds.startswith('Theorem 27')
  assert rows.loc['best gamma, both decay'].bounds == 'Theorem 29'
  assert list(rows.form) == [
      'derived', 'derived', 'house', 'house', 'derived', 'derived'
  ]
  for row in rows.itertuples():
    if '17' in row.bounds:
      assert row.surrogate_distance == row.theorem_17 <= row.theorem_21
    if '21' in row.bounds:
      assert row.surrogate_distance == row.theorem_21 <= row.theorem_17


def test_condition_number_and_limit_are_those_of_the_theory(rows):
  for row in rows.itertuples():
    where = (row.num_steps, row.client_learning_rate)
    assert row.condition_number == pytest.approx(
        spectrum.condition_number_bound(
            Theta.ones(row.num_steps), 0.1, 1.0, row.client_learning_rate
        )
    )
    assert row.max_server_learning_rate == pytest.approx(
        convergence.max_server_rate(CONSTANTS, *where)
    )


def test_given_rate_is_left_out_or_refused():
  best_of_each = [trade_off.constant_rates(QUESTION, 10, 0.0)]
  table = trade_off_table.advice_table(QUESTION, best_of_each)
  assert 'given gamma' not in set(table.choice)
  with pytest.raises(ValueError, match='client_learning_rate must be below'):
    trade_off_table.advice_table(QUESTION, best_of_each, 1.0)
