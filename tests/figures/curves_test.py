"""Curves have the numbers of the runs; diverged ones are not drawn."""

import warnings

import numpy as np
import pytest

from baselines.figures import curves
from baselines.figures import rate_runs
from baselines.figures import style
from tests.figures import rate_cases as cases


def _load(*folders):
  return rate_runs.load_groups(folders, ['loss_before_training'])


def _drawn(monkeypatch, *arguments, **options):
  figures = []
  monkeypatch.setattr(style, 'save', lambda figure, path: figures.append(
      figure
  ))
  curves.draw(*arguments, None, **options)
  return figures[0].axes[0]


def test_population_loss_at_its_rounds(tmp_path):
  table = curves.curve_table(
      _load(cases.write_all(tmp_path / 'a')), 'population_loss'
  )
  assert list(table.columns) == [
      'line', 'client_learning_rate', 'server_learning_rate', 'decays', 'round',
      'runs', 'mean', 'smallest', 'largest',
  ]
  # The diverged run is left out.
  assert table.line.nunique() == 5
  first = table[table.line == r'$\gamma=0, \eta=0.01$']
  assert first['round'].tolist() == [0, 3, 6]
  assert first['mean'].tolist() == [6.0, 3.0, 1.0]


def test_smoothing_is_the_mean_of_the_values_before(tmp_path):
  group = _load(cases.write_run(tmp_path / 'a', *cases.RUNS[0]))
  table = curves.curve_table(group, 'loss_before_training', 3)
  assert table['round'].tolist() == [3, 4, 5, 6]
  assert table['mean'].tolist() == [5.0, 4.0, 3.0, 2.0]


def test_repetitions_have_a_mean_and_a_band(tmp_path):
  cases.write_run(tmp_path / '0', *cases.RUNS[0])
  cases.write_run(
      tmp_path / '1', *cases.RUNS[0][:4], population=(8, 5, 2), seed=2
  )
  table = curves.curve_table(_load(tmp_path), 'population_loss')
  assert table.runs.tolist() == [2, 2, 2]
  assert table['mean'].tolist() == [7.0, 4.0, 1.5]
  assert table.smallest.tolist() == [6.0, 3.0, 1.0]
  assert table.largest.tolist() == [8.0, 5.0, 2.0]


def test_too_few_values_are_refused(tmp_path):
  group = _load(cases.write_run(tmp_path / 'a', *cases.RUNS[0]))
  with pytest.raises(ValueError, match="at least 7 values, .* found fewer of"):
    curves.curve_table(group, 'loss_before_training', 7)


def test_lines_of_the_figure_are_those_of_the_table(tmp_path, monkeypatch):
  cases.write_all(tmp_path / 'a')
  cases.write_decay(tmp_path / 'b')
  groups = _load(tmp_path / 'a', tmp_path / 'b')
  table = curves.curve_table(groups[1::2] + groups[6:], 'population_loss')
  axes = _drawn(monkeypatch, table, 'It.', quantity='population_loss')
  lines = axes.get_lines()
  assert [line.get_label() for line in lines] == [
      r'$\gamma=0$', r'$\gamma=0.1$', r'$\gamma=1$', r'decay: $\gamma=1$'
  ]
  np.testing.assert_array_equal(lines[3].get_xydata(), [
      [0, 6], [3, 2], [6, 0.5]
  ])
  assert lines[3].get_linestyle() == '-' and len(
      {line.get_color() for line in lines}
  ) == 4
  assert axes.get_yscale() == 'linear'


def test_axis_may_be_logarithmic_and_end(tmp_path, monkeypatch):
  table = curves.curve_table(
      _load(cases.write_all(tmp_path / 'a')), 'population_loss'
  )
  axes = _drawn(
      monkeypatch, table, 'It.', quantity='population_loss', log_scale=True,
      largest=2.5,
  )
  assert axes.get_yscale() == 'log' and axes.get_ylim()[1] == 2.5
  axes = _drawn(
      monkeypatch, table, 'It.', quantity='population_loss', largest=100.0
  )
  assert axes.get_ylim()[1] < 7.0


def test_all_runs_may_have_diverged(tmp_path, monkeypatch):
  groups = _load(cases.write_run(tmp_path / 'a', *cases.RUNS[4]))
  table = curves.curve_table(groups, 'population_loss')
  assert table.empty
  axes = _drawn(monkeypatch, table, 'None.', quantity='population_loss')
  assert not axes.get_lines()
  assert '1 diverged, not drawn' in curves.caption(groups, groups)


def test_caption_tells_what_was_done(tmp_path):
  cases.write_all(tmp_path / 'a')
  cases.write_all(tmp_path / 'b', seed=2)
  groups = _load(tmp_path / 'a', tmp_path / 'b')
  rule = rate_runs.Rule()
  best = rate_runs.best_of_each(groups, rule)
  assert curves.caption(groups, best[:2], 3, rule).split('; ')[-4:] == [
      r'$\eta$ of each $\gamma$: that with the smallest mean '
      'loss_before_training in the last round, of 0.01, 0.1',
      r'nothing to draw of $\gamma$ = 1',
      'means of 3 values that follow each other',
      'band: all runs',
  ]


def test_figure_of_54_lines_is_laid_out(tmp_path):
  for i in range(54):
    gamma, eta = 0.1 * (i // 9), 10 ** (-(i % 9) / 2)
    cases.write_run(tmp_path / str(i), gamma, eta, *cases.RUNS[0][2:])
  table = curves.curve_table(_load(tmp_path), 'population_loss')
  assert table.line.nunique() == 54
  with warnings.catch_warnings():
    # Matplotlib warns of axes without any room.
    warnings.simplefilter('error')
    curves.draw(
        table, 'It.', tmp_path / 'a.png', quantity='population_loss'
    )


def test_many_lines_have_marks_and_a_point_has_one(tmp_path, monkeypatch):
  for i in range(13):
    cases.write_run(tmp_path / str(i), float(i), 0.1, *cases.RUNS[0][2:])
  table = curves.curve_table(_load(tmp_path), 'population_loss')
  axes = _drawn(monkeypatch, table, 'It.', quantity='population_loss')
  assert len({line.get_marker() for line in axes.get_lines()}) == 7
  for rows, marker in ((table.iloc[:3], 'None'), (table.iloc[:1], 'o')):
    axes = _drawn(monkeypatch, rows, 'It.', quantity='population_loss')
    assert axes.get_lines()[0].get_marker() == marker


def test_axes_that_end_below_all_values_are_refused(tmp_path):
  groups = rate_runs.load_groups(
      [cases.write_all(tmp_path / 'a')], ['population_loss']
  )
  table = curves.curve_table(groups, 'population_loss')
  for largest in (0.1, 0.5):
    with pytest.raises(ValueError, match='largest must be above .* is 0.5'):
      curves.draw(
          table, 'A caption.', tmp_path / 'a.png', quantity='population_loss',
          largest=largest,
      )


def test_lines_of_nearly_equal_rates_stay_apart(tmp_path):
  rates = (0.00316228, 0.003162, 0.1, 0.10000001)
  for eta in rates:
    cases.write_run(tmp_path / str(eta), 0.1, eta, *cases.RUNS[0][2:])
  groups = rate_runs.load_groups([tmp_path], ['population_loss'])
  table = curves.curve_table(groups, 'population_loss')
  assert table.line.nunique() == 4
  assert (table.groupby('line').size() == 3).all()
