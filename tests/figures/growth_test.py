"""Growth with the horizon: which runs are a line, and its numbers."""

import math

import pytest

from baselines.figures import growth
from baselines.figures import horizon_runs
from baselines.figures import style
from tests.figures import horizon_cases as cases


def _groups(tmp_path):
  cases.write_all(tmp_path / 'b')
  for algorithm, runs in (('ceal', cases.CEAL), ('fed_avg', cases.FED_AVG)):
    for seed, exchanges in enumerate(runs, 1):
      cases.write_run(
          tmp_path / 'a' / f'{algorithm}{seed}', algorithm, exchanges[:1],
          seed=seed, horizon=20,
      )
  return horizon_runs.load_groups(
      [tmp_path / 'b', tmp_path / 'a'], growth.COLUMNS
  )


def test_rows_are_algorithms_by_horizon(tmp_path):
  table = growth.growth_table(_groups(tmp_path))
  assert table.algorithm.tolist() == [
      'FedAvg', 'FedAvg', 'FedPAQ', 'CEAL', 'CEAL'
  ]
  assert table.horizon.tolist() == [20, 100, 100, 20, 100]
  assert table.regret_mean.tolist() == [15, 19, 22, 5, 18]
  assert table.regret_sd[3] == pytest.approx(math.sqrt(2), abs=1e-12)
  assert table.uplink_mean.tolist() == [320, 640, 80, 10, 19]
  assert table.downlink_mean.tolist() == [320, 640, 640, 12, 16]


def test_figure_has_a_line_per_algorithm(tmp_path, monkeypatch):
  drawn = []
  monkeypatch.setattr(style, 'save', lambda figure, _: drawn.append(figure))
  table = growth.growth_table(_groups(tmp_path))
  for log_scale, scale in ((False, 'linear'), (True, 'log')):
    growth.draw(table, 'said', 'a.png', log_scale=log_scale)
    left, right = drawn.pop().axes
    assert left.get_yscale() == scale
  assert left.get_xscale() == right.get_xscale() == right.get_yscale() == 'log'
  assert [line.get_label() for line in left.get_lines()] == [
      'FedAvg', 'FedPAQ', 'CEAL'
  ]
  assert left.get_lines()[2].get_xdata().tolist() == [20, 100]
  assert left.get_lines()[2].get_ydata().tolist() == [5, 18]
  assert right.get_lines()[2].get_ydata().tolist() == [10, 19]
  assert len(left.collections) == 3
  ticks = [tick.get_text() for tick in right.get_xticklabels()]
  assert ticks == ['20', '100'] and not right.get_xticks(minor=True).size


def test_caption_says_what_the_band_is(tmp_path):
  groups = _groups(tmp_path)
  assert growth.caption(groups) == (
      'task scaled_regression row_sum (synthetic); T = 20, 100; mean of 2 '
      'runs each; sampling seeds 1-2; data seeds 1-2; band: one standard '
      'deviation'
  )


def test_diverged_groups_are_left_out_and_one_horizon_is_refused(tmp_path):
  cases.write_all(tmp_path)
  cases.write_run(
      tmp_path / 'x', 'ceal', cases.CEAL[0], horizon=9, status='diverged'
  )
  groups = horizon_runs.load_groups([tmp_path], growth.COLUMNS)
  with pytest.raises(ValueError, match='found horizon 100 only'):
    growth.growth_table(groups)


def test_many_lines_are_told_apart(tmp_path, monkeypatch):
  drawn = []
  monkeypatch.setattr(style, 'save', lambda figure, _: drawn.append(figure))
  for i in range(13):
    for horizon, exchanges in ((20, cases.CEAL[0][:1]), (100, cases.CEAL[0])):
      cases.write_run(
          tmp_path / f'{i}-{horizon}', 'ceal', exchanges, horizon=horizon,
          step_size=0.1 * (i + 1),
      )
  groups = horizon_runs.load_groups([tmp_path], growth.COLUMNS)
  growth.draw(growth.growth_table(groups), 'said', 'a.png', log_scale=False)
  for axes in drawn[0].axes:
    assert len({line.get_marker() for line in axes.get_lines()}) == 7
