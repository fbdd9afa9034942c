"""Figure 1 in numbers: limits, exact means, tails within 3 standard errors."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

from baselines.figures import reciprocal_curves
from tff_localupdate import theta as theta_lib
from tff_localupdate.theory import reciprocal

_RUN = reciprocal_curves.RunSettings(
    server_learning_rate=Fraction(1, 50), start=0.0, num_rounds=4000, seed=1
)
_PANELS = {
    'gamma': [(Fraction(g), 10) for g in ('0', '1/4', '1/2', '1', '1.1')],
    'K': [(Fraction(1, 4), num_steps) for num_steps in (1, 2, 5, 10, 40)],
}
_SHORT = reciprocal_curves.RunSettings(Fraction(1, 50), 0.5, 40, 1)


@pytest.fixture(name='panels', scope='module')
def _panels():
  return {
      varied: [reciprocal_curves.run_curve(_RUN, *c) for c in settings]
      for varied, settings in _PANELS.items()
  }


def _quadrature_minimizer(gamma, num_steps):
  """E Q/E[z Q] by Gauss-Legendre quadrature, exact for this polynomial."""
  nodes, weights = np.polynomial.legendre.leggauss(60)
  z = 1.25 + 0.75 * nodes
  weights = weights * z * sum((1.0 - gamma * z) ** k for k in range(num_steps))
  return np.sum(weights) / np.sum(weights * z)


def test_g26_minimizers(panels):
  found = [curve.minimizer for curve in panels['gamma']]
  expected = [
      5.0 / 7.0, 0.7829627662, 0.7979469807, 0.8284934081, 1.2607462097
  ]
  assert found == pytest.approx(expected, abs=1e-9)


def test_minimizers_agree_with_quadrature(panels):
  for curve in [*panels['gamma'], *panels['K']]:
    expected = _quadrature_minimizer(
        float(curve.client_learning_rate), curve.num_steps
    )
    assert curve.minimizer == pytest.approx(expected, abs=1e-9)


def test_k_leads_from_the_minimizer_to_the_mean_of_minimizers(panels):
  found = [curve.minimizer for curve in panels['K']]
  assert found[0] == 5.0 / 7.0
  assert found == sorted(found)
  assert found[-1] == pytest.approx(4.0 / 5.0, abs=2e-4)


def test_expectation_converges_to_the_minimizer(panels):
  for curve in [*panels['gamma'], *panels['K']]:
    assert curve.expected[0] == 0.0 and len(curve.expected) == 4001
    assert curve.expected[-1] == pytest.approx(curve.minimizer, abs=1e-9)


def test_tail_means_lie_within_three_standard_errors(panels):
  for curve in [*panels['gamma'], *panels['K']]:
    assert abs(curve.z_score) <= 3.0
    assert abs(curve.start_effect) < 1e-3
    assert curve.tail_mean == np.mean(curve.iterates[2001:])
  # The bound is sharp enough to tell the curves from x* = 5/7.
  for curve in panels['gamma'][1:]:
    assert curve.tail_mean - 5.0 / 7.0 > 5.0 * curve.tail_error


def test_variance_falls_as_gamma_grows(panels):
  """Up to gamma = 1, for a fixed eta: exactly, and in the simulation."""
  deviations = [curve.deviation for curve in panels['gamma'][:4]]
  seen = [np.std(curve.iterates[2001:]) for curve in panels['gamma'][:4]]
  assert deviations == sorted(deviations, reverse=True)
  assert seen == sorted(seen, reverse=True)
  assert seen == pytest.approx(deviations, rel=0.1)


def test_standard_error_is_that_of_stationary_iterates_in_the_end(panels):
  for curve in panels['gamma']:
    expected = reciprocal.tail_mean_error(
        curve.law, _RUN.server_learning_rate, 2000
    )
    assert curve.tail_error == pytest.approx(expected, rel=1e-3)


def test_standard_error_of_short_runs_is_what_many_runs_scatter():
  """Before the iterates have settled: 3000 runs, 3 errors of a deviation."""
  theta, gamma = theta_lib.Theta.ones(3), 0.25
  law = reciprocal.update_law(reciprocal_curves.POPULATION, theta, gamma)
  means = [
      np.mean(reciprocal.simulate(
          reciprocal_curves.POPULATION, theta, client_learning_rate=gamma,
          server_learning_rate=0.02, start=0.5, num_rounds=40, seed=seed,
      )[-20:])
      for seed in range(3000)
  ]
  found = reciprocal_curves.tail_error(law, _SHORT)
  assert found == pytest.approx(np.std(means), rel=3.0 / np.sqrt(2 * 3000))
  stationary = reciprocal.tail_mean_error(law, 0.02, 20)
  assert abs(found / stationary - 1.0) > 0.08


def test_start_effect_is_large_if_there_are_few_rounds():
  curve = reciprocal_curves.run_curve(_SHORT, Fraction(1, 4), 1)
  tail = 5.0 / 7.0 - np.mean(curve.expected[-20:])
  assert curve.start_effect == pytest.approx(-tail / curve.tail_error)
  assert curve.start_effect < -3.0


def test_table(panels):
  table = reciprocal_curves.curve_table(panels)
  assert len(table) == 10
  row = table.iloc[1]
  assert (row.varied, row.client_learning_rate, row.num_steps) == (
      'gamma', 0.25, 10
  )
  assert row.minimizer == pytest.approx(0.7829627662, abs=1e-9)
  curve = panels['gamma'][1]
  assert row.z_score == (
      (curve.tail_mean - row.minimizer) / row.standard_error
  )
  assert abs(row.expected_gap) < 1e-9 and row.deviation == curve.deviation
  # The same process in both panels.
  assert list(table.iloc[8, 1:]) == list(row.iloc[1:])


def test_unsettled_rates_are_refused():
  large = reciprocal_curves.RunSettings(Fraction(1), 0.0, 40, 1)
  with pytest.raises(ValueError, match='server_learning_rate must let'):
    reciprocal_curves.run_curve(large, Fraction(0), 10)
  with pytest.raises(ValueError, match='client_learning_rate must leave'):
    reciprocal_curves.run_curve(_RUN, Fraction(2), 10)


@pytest.mark.parametrize('rate', [1e-15, 1e-17, 0.02, 1.0])
def test_standard_error_keeps_its_digits(rate):
  law = reciprocal.update_law(
      reciprocal_curves.POPULATION, theta_lib.Theta.ones(3), 0.25
  )
  run = dataclasses.replace(_SHORT, server_learning_rate=rate)
  arguments = (law, rate, run.start, run.num_rounds)
  means = reciprocal.expected_iterates(*arguments)
  squares = reciprocal.squared_distances(*arguments)
  variances = squares - (means - float(law.minimizer)) ** 2
  variances = np.maximum(variances[-run.num_averaged :], 0.0)
  rho = 1.0 - rate * float(law.slope)
  last = run.num_averaged
  total = sum(
      variances[min(i, j)] * rho ** abs(i - j)
      for i in range(last) for j in range(last)
  )
  found = reciprocal_curves.tail_error(law, run)
  assert found == pytest.approx(np.sqrt(total) / last, rel=1e-12)
