"""Regret and bits: means, lines, tables and captions."""

import math

import numpy as np
import pandas as pd
import pytest

from baselines.figures import bits
from baselines.figures import regret
from baselines.results import captions
from baselines.results import groups as groups_lib
from baselines.results import runs as runs_lib
from tests.results import horizon_cases as cases


def _groups(tmp_path):
  cases.write_all(tmp_path)
  return groups_lib.group_by_algorithm(
      runs_lib.load_runs([tmp_path]), regret._CURVES)


def _labels(figure):
  return [text.get_text() for text in figure.legends[0].get_texts()]


def test_mean_against_time_in_a_band(tmp_path):
  curves = regret.curve_table(_groups(tmp_path))
  figure = regret.draw_against_time(curves, 'said', log_scale=False)
  (axes,) = figure.axes
  assert _labels(figure) == ['FedAvg', 'FedPAQ', 'CEAL']
  line = axes.get_lines()[0]
  assert line.get_xdata().tolist() == [0, 50, 100]
  assert line.get_ydata().tolist() == [0, 15, 19]
  band = axes.collections[0].get_paths()[0].vertices
  half = np.sqrt(50)  # The deviation of 10 and 20.
  assert band[:, 1].min() == 0
  assert band[:, 1].max() == pytest.approx(19 + half)
  assert axes.get_yscale() == 'linear' and figure.get_supxlabel() == 'said'


def test_logarithm_leaves_out_the_start_and_bends_what_is_linear(tmp_path):
  curves = regret.curve_table(_groups(tmp_path))
  figure = regret.draw_against_time(curves, '', log_scale=True)
  (axes,) = figure.axes
  assert axes.get_yscale() == 'log'
  line = axes.get_lines()[0]
  found = dict(zip(line.get_xdata(), line.get_ydata()))
  assert min(found) == pytest.approx(0.2) and min(found.values()) > 0
  assert (found[25], found[50], found[75], found[100]) == (7.5, 15, 17, 19)


def test_mean_regret_against_mean_bits(tmp_path):
  curves = regret.curve_table(_groups(tmp_path))
  figure = regret.draw_against_bits(curves, 'said', log_scale=False)
  (axes,) = figure.axes
  assert axes.get_xscale() == 'log' and _labels(figure)[2] == 'CEAL'
  line = axes.get_lines()[2]
  assert line.get_xdata().tolist() == [5, 10, 14, 19, 19]
  assert line.get_ydata().tolist() == [3.5, 6, 10, 13, 18]
  assert line.get_drawstyle() == 'steps-pre'


def test_nothing_sent_is_refused():
  curves = pd.DataFrame({'cumulative_uplink_bits_mean': [0.0, 0.0]})
  with pytest.raises(ValueError, match='must have sent bits'):
    regret.draw_against_bits(curves, '', log_scale=False)


def test_captions_say_what_is_shown(tmp_path):
  groups = _groups(tmp_path)
  said = '; '.join(captions.describe_algorithms(groups))
  assert regret.caption_against_time(groups) == (
      f'{said}; band: one standard deviation; linear between exchanges'
  )
  assert regret.caption_against_bits(groups) == (
      f'{said}; at each time, mean regret against mean bits; dot: at T; codes: '
      'FedPAQ fixed_width, CEAL signed_unary'
  )
  single = [groups_lib.Group(groups[0].all_runs[:1])]
  assert 'band' not in regret.caption_against_time(single)


def test_many_lines_are_told_apart_and_their_code_is_named_once(tmp_path):
  for i in range(13):
    cases.write_run(
        tmp_path / str(i), 'ceal', cases.CEAL[0], step_size=0.1 * (i + 1)
    )
  groups = groups_lib.group_by_algorithm(
      runs_lib.load_runs([tmp_path]), regret._CURVES)
  said = regret.caption_against_bits(groups)
  assert said.endswith('dot: at T; code: signed_unary')
  curves = regret.curve_table(groups)
  for draw in (regret.draw_against_time, regret.draw_against_bits):
    figure = draw(curves, said, log_scale=False)
    lines = figure.axes[0].get_lines()
    assert len({line.get_marker() for line in lines}) == 7
    assert len(_labels(figure)) == 13


def _curves(path):
  return regret.curve_table(
      groups_lib.group_by_algorithm(
      runs_lib.load_runs([path]), regret._CURVES)
  )


def test_mean_is_over_runs_interpolated_on_the_times_of_both(tmp_path):
  curves = _curves(cases.write_all(tmp_path))
  ceal = curves[curves.algorithm == 'CEAL']
  assert ceal.time_used.tolist() == [0, 10, 20, 40, 60, 100]
  # Run 1: 0, 4, 6, 10, 12, 16; run 2: 0, 3, 6, 10, 14, 20.
  assert ceal.cumulative_regret_mean.tolist() == [0, 3.5, 6, 10, 13, 18]
  root = math.sqrt(2)
  assert ceal.cumulative_regret_sd.tolist() == pytest.approx(
      [0, 1 / root, 0, 0, 2 / root, 4 / root], abs=1e-12
  )
  assert set(ceal.runs) == {2}


def test_bits_count_from_the_end_of_an_exchange(tmp_path):
  curves = _curves(cases.write_all(tmp_path))
  ceal = curves[curves.algorithm == 'CEAL']
  # Run 1: 0, 10, 10, 18, 18, 18; run 2: 0, 0, 10, 10, 20, 20.
  assert ceal.cumulative_uplink_bits_mean.tolist() == [0, 5, 10, 14, 19, 19]


def test_lines_follow_each_other_and_diverged_runs_are_left_out(tmp_path):
  cases.write_all(tmp_path)
  cases.write_run(
      tmp_path / 'x', 'fed_avg', cases.FED_AVG[0], seed=3, status='diverged'
  )
  cases.write_run(
      tmp_path / 'y', 'ceal', cases.CEAL[0], step_size=9.0, status='diverged'
  )
  curves = _curves(tmp_path)
  assert list(curves.algorithm.unique()) == [
      'FedAvg', 'FedPAQ', 'CEAL, step_size 0.5'
  ]
  mean = curves[curves.algorithm == 'FedAvg'].cumulative_regret_mean
  assert mean.tolist() == [0, 15, 19]


def test_one_run_has_no_deviation(tmp_path):
  cases.write_run(tmp_path / 'a', 'ceal', cases.CEAL[0])
  curves = _curves(tmp_path)
  assert np.isnan(curves.cumulative_regret_sd).all()
  assert curves.cumulative_regret_mean.tolist() == [0, 4, 10, 16]


def _groups_growth(tmp_path):
  cases.write_all(tmp_path / 'b')
  for algorithm, runs in (('ceal', cases.CEAL), ('fed_avg', cases.FED_AVG)):
    for seed, exchanges in enumerate(runs, 1):
      cases.write_run(
          tmp_path / 'a' / f'{algorithm}{seed}', algorithm, exchanges[:1],
          seed=seed, horizon=20,
      )
  return groups_lib.group_by_algorithm(
      runs_lib.load_runs([tmp_path / 'b', tmp_path / 'a']), bits.COLUMNS
  )


def test_rows_are_algorithms_by_horizon(tmp_path):
  table = regret.growth_table(_groups_growth(tmp_path))
  assert table.algorithm.tolist() == [
      'FedAvg', 'FedAvg', 'FedPAQ', 'CEAL', 'CEAL'
  ]
  assert table.horizon.tolist() == [20, 100, 100, 20, 100]
  assert table.regret_mean.tolist() == [15, 19, 22, 5, 18]
  assert table.regret_sd[3] == pytest.approx(math.sqrt(2), abs=1e-12)
  assert table.uplink_mean.tolist() == [320, 640, 80, 10, 19]
  assert table.downlink_mean.tolist() == [320, 640, 640, 12, 16]


def test_figure_has_a_line_per_algorithm(tmp_path):
  table = regret.growth_table(_groups_growth(tmp_path))
  for log_scale, scale in ((False, 'linear'), (True, 'log')):
    figure = regret.draw_growth(table, 'said', log_scale=log_scale)
    left, right = figure.axes
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
  groups = _groups_growth(tmp_path)
  assert regret.growth_caption(groups) == (
      'task scaled_regression row_sum (synthetic); T = 20, 100; mean of 2 '
      'runs each; sampling seeds 1-2; data seeds 1-2; band: one standard '
      'deviation'
  )


def test_diverged_groups_are_left_out_and_one_horizon_is_refused(tmp_path):
  cases.write_all(tmp_path)
  cases.write_run(
      tmp_path / 'x', 'ceal', cases.CEAL[0], horizon=9, status='diverged'
  )
  groups = groups_lib.group_by_algorithm(
      runs_lib.load_runs([tmp_path]), bits.COLUMNS)
  with pytest.raises(ValueError, match='found horizon 100 only'):
    regret.growth_table(groups)


def test_many_lines_are_told_apart(tmp_path):
  for i in range(13):
    for horizon, exchanges in ((20, cases.CEAL[0][:1]), (100, cases.CEAL[0])):
      cases.write_run(
          tmp_path / f'{i}-{horizon}', 'ceal', exchanges, horizon=horizon,
          step_size=0.1 * (i + 1),
      )
  groups = groups_lib.group_by_algorithm(
      runs_lib.load_runs([tmp_path]), bits.COLUMNS)
  figure = regret.draw_growth(
      regret.growth_table(groups), 'said', log_scale=False
  )
  for axes in figure.axes:
    assert len({line.get_marker() for line in axes.get_lines()}) == 7


# Three exchanges in epoch 2, and an epoch 3 that ends with the horizon.
_LONG = (
    cases.Exchange(10, 4, 1, 1),
    cases.Exchange(20, 7, 1, 1, epoch=2, stepped=0),
    cases.Exchange(30, 9, 1, 1, epoch=2, stepped=0),
    cases.Exchange(15, 10, 1, 1, epoch=2),
    cases.Exchange(25, 12, 1, 1, epoch=3),
)


def _groups_epochs(path):
  return groups_lib.group_by_algorithm(
      runs_lib.load_runs([path]), regret._EPOCHS, ['ceal'])


def test_exchanges_of_an_epoch_are_added(tmp_path):
  cases.write_run(tmp_path / 'a', 'ceal', _LONG)
  found = regret.run_epochs(_groups_epochs(tmp_path)[0].runs[0])
  assert found.index.tolist() == [1, 2, 3]
  assert found.queries.tolist() == [10, 65, 25]
  assert found.regret.tolist() == [4, 6, 2]


def test_table_is_of_the_runs_that_completed_the_epoch(tmp_path):
  """t_1 of 10 and 20, regrets of 4 and 6; only run 2 completed epoch 2."""
  table = regret.epoch_table(_groups_epochs(cases.write_all(tmp_path)))
  assert set(table.algorithm) == {'CEAL'}
  assert table.epoch.tolist() == [1, 2]
  assert table.all_runs.tolist() == [2, 2] and table.runs.tolist() == [2, 1]
  assert table.queries_mean.tolist() == [15, 40]
  assert table.queries_sd[0] == pytest.approx(10 / math.sqrt(2), abs=1e-12)
  assert math.isnan(table.queries_sd[1])
  assert (table.queries_min[0], table.queries_max[0]) == (10, 20)
  assert table.regret_mean.tolist() == [5, 8]
  assert table.regret_sd[0] == pytest.approx(2 / math.sqrt(2), abs=1e-12)
  assert (table.regret_min[0], table.regret_max[0]) == (4, 6)


def test_figure_has_means_bands_and_hollow_marks(tmp_path):
  figure = regret.draw_epochs(
      regret.epoch_table(_groups_epochs(cases.write_all(tmp_path))), 'said'
  )
  left, right = figure.axes
  assert left.get_yscale() == 'log' and right.get_yscale() == 'linear'
  mean, hollow = left.get_lines()
  assert mean.get_ydata().tolist() == [15, 40]
  assert hollow.get_xdata().tolist() == [2]
  assert right.get_lines()[0].get_ydata().tolist() == [5, 8]
  assert len(left.collections) == len(right.collections) == 1
  assert not figure.legends and figure.get_supxlabel() == 'said'


def test_several_settings_have_a_legend(tmp_path):
  for i, clip in enumerate((True, False)):
    cases.write_run(tmp_path / f'{i}', 'ceal', _LONG, clip=clip)
  figure = regret.draw_epochs(
      regret.epoch_table(_groups_epochs(tmp_path)), ''
  )
  (legend,) = figure.legends
  assert [text.get_text() for text in legend.get_texts()] == [
      'CEAL, clip False', 'CEAL, clip True'
  ]


def test_caption_says_what_is_left_out(tmp_path):
  groups = _groups_epochs(cases.write_all(tmp_path / 'a'))
  assert regret.epoch_caption(groups, regret.epoch_table(groups)).endswith(
      'mean of 2 runs each; sampling seeds 1-2; data seeds 1-2; band: from the '
      'least to the '
      'greatest of the runs; hollow: only of the runs that completed epoch k '
      'before T; the epoch that T cuts short is left out'
  )
  cases.write_run(tmp_path / 'b', 'ceal', _LONG)
  groups = _groups_epochs(tmp_path / 'b')
  said = regret.epoch_caption(groups, regret.epoch_table(groups))
  assert 'band' not in said and 'hollow' not in said


def test_no_completed_epoch_is_refused(tmp_path):
  cases.write_run(
      tmp_path / 'a', 'ceal', [cases.Exchange(9, 1, 0, 0, 0, 1, 0)]
  )
  with pytest.raises(ValueError, match='must have completed an epoch'):
    regret.epoch_table(_groups_epochs(tmp_path))


def test_many_lines_are_told_apart_by_marks_hollow_or_not(
    tmp_path
):
  for i in range(13):
    cases.write_run(
        tmp_path / str(i), 'ceal', _LONG, step_size=0.1 * (i + 1)
    )
  figure = regret.draw_epochs(
      regret.epoch_table(_groups_epochs(tmp_path)), 'said'
  )
  lines = figure.axes[0].get_lines()
  for line, hollow in zip(lines[::2], lines[1::2]):
    assert line.get_marker() == hollow.get_marker()
    assert hollow.get_linestyle() == 'None'
    assert hollow.get_markerfacecolor() == 'white'
  assert len({line.get_marker() for line in lines}) == 7
