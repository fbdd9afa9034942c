"""Figure 1: limits, exact means, tails within 3 standard errors, panels."""

import dataclasses
from fractions import Fraction
import warnings

import numpy as np
import pandas as pd
import pytest

from baselines.figures import figure1
from baselines.figures import main
from baselines.figures import style
from tff_localupdate import theta as theta_lib
from tff_localupdate.theory import reciprocal

_RUN = figure1.RunSettings(
    server_learning_rate=Fraction(1, 50), start=0.0, num_rounds=4000, seed=1
)
_PANELS = {
    'gamma': [(Fraction(g), 10) for g in ('0', '1/4', '1/2', '1', '1.1')],
    'K': [(Fraction(1, 4), num_steps) for num_steps in (1, 2, 5, 10, 40)],
}
_SHORT = figure1.RunSettings(Fraction(1, 50), 0.5, 40, 1)


@pytest.fixture(name='panels', scope='module')
def _panels():
  return {
      varied: [figure1.run_curve(_RUN, *c) for c in settings]
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
  law = reciprocal.update_law(figure1.POPULATION, theta, gamma)
  means = [
      np.mean(reciprocal.simulate(
          figure1.POPULATION, theta, client_learning_rate=gamma,
          server_learning_rate=0.02, start=0.5, num_rounds=40, seed=seed,
      )[-20:])
      for seed in range(3000)
  ]
  found = figure1.tail_error(law, _SHORT)
  assert found == pytest.approx(np.std(means), rel=3.0 / np.sqrt(2 * 3000))
  stationary = reciprocal.tail_mean_error(law, 0.02, 20)
  assert abs(found / stationary - 1.0) > 0.08


def test_start_effect_is_large_if_there_are_few_rounds():
  curve = figure1.run_curve(_SHORT, Fraction(1, 4), 1)
  tail = 5.0 / 7.0 - np.mean(curve.expected[-20:])
  assert curve.start_effect == pytest.approx(-tail / curve.tail_error)
  assert curve.start_effect < -3.0


def test_table(panels):
  table = figure1.curve_table(panels)
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
  large = figure1.RunSettings(Fraction(1), 0.0, 40, 1)
  with pytest.raises(ValueError, match='server_learning_rate must let'):
    figure1.run_curve(large, Fraction(0), 10)
  with pytest.raises(ValueError, match='client_learning_rate must leave'):
    figure1.run_curve(_RUN, Fraction(2), 10)


@pytest.mark.parametrize('rate', [1e-15, 1e-17, 0.02, 1.0])
def test_standard_error_keeps_its_digits(rate):
  law = reciprocal.update_law(
      figure1.POPULATION, theta_lib.Theta.ones(3), 0.25
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
  found = figure1.tail_error(law, run)
  assert found == pytest.approx(np.sqrt(total) / last, rel=1e-12)


_RUN_FIGURE1 = figure1.RunSettings(
    server_learning_rate=Fraction(1, 50), start=0.5, num_rounds=60, seed=1
)


@pytest.fixture(name='curves', scope='module')
def _curves():
  rates = [
      figure1.run_curve(_RUN_FIGURE1, Fraction(g), 4)
      for g in ('0', '1/4', '1.1')
  ]
  steps = [
      figure1.run_curve(_RUN_FIGURE1, Fraction(1, 4), k) for k in (1, 10)
  ]
  return rates, steps


def test_panels_hold_limits_runs_means_and_minimizers(curves):
  figure = figure1.draw(*curves, _RUN_FIGURE1)
  assert len(figure.axes) == 2
  for axes, drawn in zip(figure.axes, curves):
    lines = [np.asarray(line.get_ydata(), float) for line in axes.get_lines()]
    assert len(lines) == 2 + 3 * len(drawn)
    assert lines[0].tolist() == [5.0 / 7.0] * 2
    assert lines[1].tolist() == [4.0 / 5.0] * 2
    for i, curve in enumerate(drawn):
      iterates, expected, limit = lines[2 + 3 * i : 5 + 3 * i]
      np.testing.assert_array_equal(iterates, curve.iterates)
      np.testing.assert_array_equal(expected, curve.expected)
      assert limit.tolist() == [curve.minimizer] * 2


def test_legends_say_what_varies(curves):
  figure = figure1.draw(*curves, _RUN_FIGURE1)
  legends = [axes.get_legend() for axes in figure.axes]
  texts = [[t.get_text() for t in legend.get_texts()] for legend in legends]
  assert texts[0] == [
      '$x^*$ $= 5/7$', '$c$ $= 4/5$', r'$\gamma = 0$', r'$\gamma = 0.25$',
      r'$\gamma = 1.1$',
  ]
  assert texts[1][2:] == ['$K = 1$', '$K = 10$']
  titles = [legend.get_title().get_text() for legend in legends]
  assert titles == ['$K = 4$', r'$\gamma = 0.25$']


def test_caption_is_broken_between_the_formulas(curves, tmp_path):
  text = figure1.caption(_RUN_FIGURE1)
  assert r'$\eta$ = 0.02' in text and 'seed 1' in text
  figure = style.new_figure()
  style.add_caption(figure, text)
  for line in figure.get_supxlabel().splitlines():
    assert line.count('$') % 2 == 0
  style.save(figure1.draw(*curves, _RUN_FIGURE1), tmp_path / 'a.svg')
  assert (tmp_path / 'a.svg').read_bytes().startswith(b'<?xml')


def test_many_curves_make_the_figure_higher(curves):
  rates, steps = curves
  figures = [figure1.draw(rates, steps, _RUN_FIGURE1)]
  many = [rates[1]._replace(client_learning_rate=Fraction(i, 10**5))
          for i in range(60)]
  figures.append(figure1.draw(many, steps, _RUN_FIGURE1))
  few, figure = figures
  assert few.get_size_inches().tolist() == [10.5, 5.0]
  with warnings.catch_warnings():
    warnings.simplefilter('error')
    for drawn in figures:
      drawn.draw_without_rendering()
  rooms = [f.axes[0].get_window_extent() for f in figures]
  assert rooms[1].height >= 0.9 * rooms[0].height
  assert rooms[1].width >= 0.9 * rooms[0].width
  left, right = (axes.get_legend() for axes in figure.axes)
  place = left.get_window_extent()
  assert place.y1 <= figure.bbox.y1 and place.x0 >= 0
  assert place.x1 <= right.get_window_extent().x0
  assert len(left.get_texts()) == 62
  assert left.get_texts()[3].get_text() == r'$\gamma = 1\mathrm{e}{-}5$'


_FAST = [
    '--rounds', '60', '--server_learning_rate', '0.05', '--start', '-0.5',
    '--num_steps', '4', '--client_learning_rates', '0,1/4',
    '--num_steps_list', '1,10', '--client_learning_rate', '0.1',
]


def test_default_table_proves_the_figure(tmp_path, capsys):
  """G26 to 1e-9, E x to x* to 1e-9, tails within 3 standard errors."""
  output, csv = tmp_path / 'new' / 'a.png', tmp_path / 'new' / 'a.csv'
  code = main.main(['figure1', '--output', str(output), '--csv', str(csv)])
  assert code == 0 and output.read_bytes().startswith(b'\x89PNG')
  said = capsys.readouterr().out.splitlines()
  assert said[0].split()[:3] == ['varied', 'client_learning_rate', 'num_steps']
  assert len(said) == 13 and said[11:] == [str(output), str(csv)]
  table = pd.read_csv(csv, float_precision='round_trip')
  assert list(table.num_steps) == [10] * 5 + [1, 2, 5, 10, 40]
  assert list(table.minimizer[1:5]) == pytest.approx(
      [0.7829627662, 0.7979469807, 0.8284934081, 1.2607462097], abs=1e-9
  )
  assert table.expected_gap.abs().max() < 1e-9
  assert table.z_score.abs().max() <= 3.0
  assert table.start_effect.abs().max() < 1e-3


def test_options_reach_the_curves(tmp_path, monkeypatch):
  monkeypatch.setattr(figure1, 'draw', lambda *_: style.new_figure())
  csv = tmp_path / 'a.csv'
  for seed in ('1', '2'):
    arguments = ['--output', str(tmp_path / 'a.png'), '--csv', str(csv)]
    assert main.main(['figure1', *arguments, *_FAST, '--seed', seed]) == 0
    csv = tmp_path / 'b.csv'
  tables = [pd.read_csv(tmp_path / name) for name in ('a.csv', 'b.csv')]
  rows = list(zip(tables[0].client_learning_rate, tables[0].num_steps))
  assert rows == [(0.0, 4), (0.25, 4), (0.1, 1), (0.1, 10)]
  # E x_{T+1} - x* = (1 - eta E a)^T (x_1 - x*) with E a = 4 E z, K = 4.
  expected = (1 - Fraction(5, 100) * 4 * Fraction(7, 5)) ** 60
  expected *= Fraction(-1, 2) - Fraction(5, 7)
  assert tables[0].expected_gap[0] == pytest.approx(float(expected), abs=1e-15)
  assert (tables[0].tail_mean != tables[1].tail_mean).all()
  assert (tables[0].standard_error == tables[1].standard_error).all()


@pytest.mark.parametrize('arguments, message', [
    (['--server_learning_rate', '1'], 'server_learning_rate must let the'),
    (['--client_learning_rates', '0,2'], 'client_learning_rate must leave'),
])
def test_rates_that_do_not_settle_are_refused(
    arguments, message, tmp_path, capsys
):
  output = tmp_path / 'a.png'
  assert main.main(['figure1', '--output', str(output), *arguments]) == 2
  said = capsys.readouterr()
  assert said.err.startswith('localupdate-figures: error: ' + message)
  assert said.err.count('\n') == 1 and not said.out and not output.exists()


@pytest.mark.parametrize('arguments, message', [
    (['--num_steps_list', '1,101'], 'argument --num_steps_list: must be a'),
    (['--client_learning_rate', '-1'], 'argument --client_learning_rate: '),
    (['--rounds', '1'], 'argument --rounds: must be a whole number from 2'),
    (['--csv', 'a.txt'], "argument --csv: must end in .csv"),
])
def test_wrong_values_are_refused(arguments, message, tmp_path, capsys):
  with pytest.raises(SystemExit) as caught:
    main.main(['figure1', '--output', str(tmp_path / 'a.png'), *arguments])
  said = capsys.readouterr().err
  assert caught.value.code == 2 and message in said and said.count('\n') == 1
