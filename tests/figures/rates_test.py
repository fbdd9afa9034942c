"""Figures and tables of gamma and eta: numbers, lines and captions."""

import math
import warnings

import numpy as np
import pytest

from baselines.figures import rates
from baselines.figures import style
from baselines.results import captions
from baselines.results import groups as groups_lib
from baselines.results import ranking
from baselines.results import runs as runs_lib
from tests.results import rate_cases as cases
from tests.results.runs_test import write_run


def _load(*folders):
  return groups_lib.group_by_rates(
      runs_lib.load_runs(folders), ['loss_before_training'])


def _drawn(*arguments, **options):
  return rates.draw_curves(*arguments, **options).axes[0]


def test_population_loss_at_its_rounds(tmp_path):
  table = rates.curve_table(
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
  table = rates.curve_table(group, 'loss_before_training', 3)
  assert table['round'].tolist() == [3, 4, 5, 6]
  assert table['mean'].tolist() == [5.0, 4.0, 3.0, 2.0]


def test_repetitions_have_a_mean_and_a_band(tmp_path):
  cases.write_run(tmp_path / '0', *cases.RUNS[0])
  cases.write_run(
      tmp_path / '1', *cases.RUNS[0][:4], population=(8, 5, 2), seed=2
  )
  table = rates.curve_table(_load(tmp_path), 'population_loss')
  assert table.runs.tolist() == [2, 2, 2]
  assert table['mean'].tolist() == [7.0, 4.0, 1.5]
  assert table.smallest.tolist() == [6.0, 3.0, 1.0]
  assert table.largest.tolist() == [8.0, 5.0, 2.0]


def test_too_few_values_are_refused(tmp_path):
  group = _load(cases.write_run(tmp_path / 'a', *cases.RUNS[0]))
  with pytest.raises(ValueError, match="at least 7 values, .* found fewer of"):
    rates.curve_table(group, 'loss_before_training', 7)


def test_lines_of_the_figure_are_those_of_the_table(tmp_path):
  cases.write_all(tmp_path / 'a')
  cases.write_decay(tmp_path / 'b')
  groups = _load(tmp_path / 'a', tmp_path / 'b')
  table = rates.curve_table(groups[1::2] + groups[6:], 'population_loss')
  axes = _drawn(table, 'It.', quantity='population_loss')
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


def test_axis_may_be_logarithmic_and_end(tmp_path):
  table = rates.curve_table(
      _load(cases.write_all(tmp_path / 'a')), 'population_loss'
  )
  axes = _drawn(
      table, 'It.', quantity='population_loss', log_scale=True,
      largest=2.5,
  )
  assert axes.get_yscale() == 'log' and axes.get_ylim()[1] == 2.5
  axes = _drawn(
      table, 'It.', quantity='population_loss', largest=100.0
  )
  assert axes.get_ylim()[1] < 7.0


def test_all_runs_may_have_diverged(tmp_path):
  groups = _load(cases.write_run(tmp_path / 'a', *cases.RUNS[4]))
  table = rates.curve_table(groups, 'population_loss')
  assert table.empty
  axes = _drawn(table, 'None.', quantity='population_loss')
  assert not axes.get_lines()
  assert '1 diverged, not drawn' in rates.curve_caption(groups, groups)


def test_caption_tells_what_was_done(tmp_path):
  cases.write_all(tmp_path / 'a')
  cases.write_all(tmp_path / 'b', seed=2)
  groups = _load(tmp_path / 'a', tmp_path / 'b')
  rule = ranking.Rule()
  best = ranking.best_groups(groups, rule)
  assert rates.curve_caption(groups, best[:2], 3, rule).split('; ')[-4:] == [
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
  table = rates.curve_table(_load(tmp_path), 'population_loss')
  assert table.line.nunique() == 54
  with warnings.catch_warnings():
    # Matplotlib warns of axes without any room.
    warnings.simplefilter('error')
    rates.draw_curves(
        table, 'It.', quantity='population_loss'
    )


def test_many_lines_have_marks_and_a_point_has_one(tmp_path):
  for i in range(13):
    cases.write_run(tmp_path / str(i), float(i), 0.1, *cases.RUNS[0][2:])
  table = rates.curve_table(_load(tmp_path), 'population_loss')
  axes = _drawn(table, 'It.', quantity='population_loss')
  assert len({line.get_marker() for line in axes.get_lines()}) == 7
  for rows, marker in ((table.iloc[:3], 'None'), (table.iloc[:1], 'o')):
    axes = _drawn(rows, 'It.', quantity='population_loss')
    assert axes.get_lines()[0].get_marker() == marker


def test_axes_that_end_below_all_values_are_refused(tmp_path):
  groups = groups_lib.group_by_rates(
      runs_lib.load_runs([cases.write_all(tmp_path / 'a')]), ['population_loss']
  )
  table = rates.curve_table(groups, 'population_loss')
  for largest in (0.1, 0.5):
    with pytest.raises(ValueError, match='largest must be above .* is 0.5'):
      rates.draw_curves(
        table, 'A caption.', quantity='population_loss',
          largest=largest,
      )


def test_lines_of_nearly_equal_rates_stay_apart(tmp_path):
  etas = (0.00316228, 0.003162, 0.1, 0.10000001)
  for eta in etas:
    cases.write_run(tmp_path / str(eta), 0.1, eta, *cases.RUNS[0][2:])
  groups = groups_lib.group_by_rates(
      runs_lib.load_runs([tmp_path]), ['population_loss'])
  table = rates.curve_table(groups, 'population_loss')
  assert table.line.nunique() == 4
  assert (table.groupby('line').size() == 3).all()


def _runs(tmp_path):
  for i, gamma in enumerate((0.1, 0.01, 0.0)):
    write_run(tmp_path / f'{i}', client_learning_rate=gamma)
  write_run(
      tmp_path / '3', client_learning_rate=0.1, sampling_seed=2,
      rows=((0, 2.0), (1, ''), (2, 3.0)),
  )
  write_run(tmp_path / '4', client_learning_rate=1.0, status='diverged')
  return runs_lib.read_runs(tmp_path)


def _loss(runs, quantity='population_loss', **options):
  table = runs_lib.table_of(runs)
  return rates.draw_loss(table, quantity, **options)


def test_lines_are_sorted_by_rate_and_diverged_ones_left_out(tmp_path):
  figure = _loss(_runs(tmp_path)).figure
  (axes,) = figure.axes
  labels = [text.get_text() for text in axes.get_legend().get_texts()]
  assert labels == [
      r'$\gamma$ = 0', r'$\gamma$ = 0.01', r'$\gamma$ = 0.1'
  ]
  assert axes.get_xlabel() == 'round $t$'
  assert axes.get_ylabel() == 'population loss $f(x_t)$'


def test_repetitions_are_one_line_their_mean_in_a_band(tmp_path):
  figure = _loss(_runs(tmp_path)).figure
  (axes,) = figure.axes
  line = axes.get_lines()[2]
  np.testing.assert_array_equal(line.get_xdata(), [0, 2])
  np.testing.assert_array_equal(line.get_ydata(), [2.0, (1.0 + 3.0) / 2])
  assert len(axes.collections) == 1


def test_caption_counts_runs_seeds_and_diverged_ones(tmp_path):
  text = '; '.join(captions.describe_any(_runs(tmp_path)))
  assert 'task digits' in text and r'$\eta$ = 0.5' in text
  assert '5 runs; sampling seeds 1, 2; 1 diverged, not drawn' in text
  assert 'gamma' not in text and 'not finished' not in text


def test_algorithms_with_other_settings_are_told_apart(tmp_path):
  write_run(tmp_path / 'local', algorithm='local_update')
  for name in ('ceal', 'fed_avg'):
    write_run(
        tmp_path / name, algorithm=name, step_size=0.1, theta=None,
        client_learning_rate=None, server_optimizer=None,
        server_learning_rate=None,
    )
  runs = runs_lib.read_runs(tmp_path)
  for run in runs:
    for part in run.components.values():
      for name in [n for n, value in part.items() if value is None]:
        del part[name]
  figure = _loss(runs).figure
  assert len(figure.axes[0].get_lines()) == 3
  texts = [line.get_label() for line in figure.axes[0].get_lines()]
  assert [text.split(',')[0] for text in texts] == [
      'algorithm ceal', 'algorithm fed_avg', 'algorithm local_update'
  ]
  assert 'Theta' in texts[2] and 'Theta' not in texts[0]
  assert 'task digits' in '; '.join(captions.describe_any(runs))


def test_unfinished_runs_are_counted(tmp_path):
  write_run(tmp_path / 'a', status='interrupted')
  runs = runs_lib.read_runs(tmp_path)
  assert captions.describe_any(runs)[-1] == '1 not finished'


def test_run_that_failed_at_once_is_counted_only(tmp_path):
  write_run(tmp_path / 'a')
  failed = write_run(tmp_path / 'b', sampling_seed=2, status='failed')
  (failed / 'metrics.csv').unlink()
  runs = runs_lib.read_runs(tmp_path)
  figure = _loss(runs).figure
  (line,) = figure.axes[0].get_lines()
  assert line.get_ydata().tolist() == [2.0, 1.0]
  assert '; '.join(captions.describe_any(runs)).endswith('1 not finished')


def test_setting_with_one_diverged_seed_is_left_out(tmp_path):
  write_run(tmp_path / 'a')
  write_run(tmp_path / 'b', sampling_seed=2, status='diverged')
  write_run(tmp_path / 'c', client_learning_rate=0.0)
  figure = _loss(runs_lib.read_runs(tmp_path)).figure
  assert len(figure.axes[0].get_lines()) == 1


def test_only_diverged_runs_give_a_figure_that_says_so(tmp_path):
  write_run(tmp_path / 'a', status='diverged')
  drawn = _loss(runs_lib.read_runs(tmp_path))
  assert not drawn.has_lines and not drawn.figure.axes[0].get_lines()


def test_quantity_without_values_is_refused(tmp_path):
  write_run(tmp_path / 'a')
  with pytest.raises(ValueError, match="found 'test_accuracy' in none of 1"):
    _loss(runs_lib.read_runs(tmp_path), 'test_accuracy')


@pytest.mark.parametrize('ending, start', [
    ('png', b'\x89PNG'), ('pdf', b'%PDF'), ('svg', b'<?xml'),
])
def test_ending_says_the_format(tmp_path, ending, start):
  path = tmp_path / 'new' / f'loss.{ending}'
  drawn = _loss(_runs(tmp_path / 'runs'), log_scale=True)
  style.save(drawn.figure, path)
  assert path.read_bytes().startswith(start)
  assert len(list(path.parent.iterdir())) == 1


def test_long_legend_stands_beside_the_axes(tmp_path):
  for i in range(8):
    write_run(tmp_path / f'{i}', client_learning_rate=float(i))
  figure = _loss(runs_lib.read_runs(tmp_path)).figure
  figure.draw_without_rendering()
  legend = figure.axes[0].get_legend().get_window_extent()
  assert legend.x0 >= figure.axes[0].get_window_extent().x1


def test_60_lines_have_a_legend_of_their_own_room(tmp_path):
  for i in range(60):
    write_run(tmp_path / f'{i}', client_learning_rate=float(i))
  figure = _loss(runs_lib.read_runs(tmp_path)).figure
  assert len(figure.axes[0].get_lines()) == 60
  with warnings.catch_warnings():
    warnings.simplefilter('error')
    figure.draw_without_rendering()
  (axes,), (legend,) = figure.axes, figure.legends
  room = axes.get_window_extent()
  assert legend.get_window_extent().x0 >= room.x1 and room.width > 500
  looks = {
      (str(line.get_linestyle()), line.get_marker())
      for line in axes.get_lines()
  }
  # Whatever its pattern, a dashed line calls itself '--'.
  assert len(looks) == 2 * 7
  # Dark to light, as few lines are.
  assert axes.get_lines()[0].get_color() == style.colours(60)[0]


def test_long_labels_do_not_cover_the_lines(tmp_path):
  for i, theta in enumerate(('1:10', ','.join('0' * 20) + ',1')):
    write_run(tmp_path / f'{i}', theta=theta, client_learning_rate=0.1 * i)
  figure = _loss(runs_lib.read_runs(tmp_path)).figure
  (axes,), (legend,) = figure.axes, figure.legends
  figure.draw_without_rendering()
  assert axes.get_legend() is None
  assert legend.get_window_extent().x0 >= axes.get_window_extent().x1


def test_large_and_small_rates_are_one_number(tmp_path):
  for i, gamma in enumerate((1e-5, 1e4, 1e6)):
    write_run(tmp_path / f'{i}', client_learning_rate=gamma)
  figure = _loss(runs_lib.read_runs(tmp_path)).figure
  labels = [line.get_label() for line in figure.axes[0].get_lines()]
  assert labels == [
      r'$\gamma$ = 1e-5', r'$\gamma$ = 10000', r'$\gamma$ = 1e6'
  ]


def test_lines_that_the_usual_settings_do_not_tell_apart_name_others(
    tmp_path
):
  for i, (gamma, rounds) in enumerate(((0.0, 2), (0.1, 2), (0.1, 4))):
    write_run(tmp_path / f'{i}', client_learning_rate=gamma, rounds=rounds)
  runs = runs_lib.read_runs(tmp_path)
  labels = [
      [line.get_label() for line in _loss(some).figure.axes[0].get_lines()]
      for some in (runs, runs[:2])
  ]
  assert labels == [
      [
          r'$\gamma$ = 0, rounds 2', r'$\gamma$ = 0.1, rounds 2',
          r'$\gamma$ = 0.1, rounds 4',
      ],
      [r'$\gamma$ = 0', r'$\gamma$ = 0.1'],
  ]


def test_repeated_runs_are_refused(tmp_path):
  write_run(tmp_path / 'a')
  runs = [runs_lib.read_run(tmp_path / 'a') for _ in range(2)]
  with pytest.raises(ValueError, match='runs must not repeat a run'):
    _loss(runs)


def _load_update_norms(*folders):
  return groups_lib.group_by_rates(
      runs_lib.load_runs(folders), ['update_norm'])


def test_mean_and_deviation_of_each_block(tmp_path):
  groups = _load_update_norms(cases.write_all(tmp_path / 'a'))
  table = rates.norm_table(groups, 3)
  # Gamma 1, eta 0.01 has diverged.
  assert len(table) == 5 * 2
  rows = table[table.line == r'$\gamma=0, \eta=0.01$']
  assert rows.first_round.tolist() == [1, 4]
  assert rows.last_round.tolist() == [3, 6]
  assert rows['mean'].tolist() == [2.0, 5.0]
  assert rows.sd.tolist() == [1.0, 1.0]
  rows = table[table.line == r'$\gamma=0.1, \eta=0.01$']
  assert rows['mean'].tolist() == [1.0, 5 / 3]
  assert rows.sd.tolist() == pytest.approx([0.0, math.sqrt(4 / 3)])


def test_rounds_that_fill_no_block_are_left_out(tmp_path):
  group = _load_update_norms(cases.write_run(tmp_path / 'a', *cases.RUNS[0]))
  table = rates.norm_table(group, 4)
  assert table.last_round.tolist() == [4] and table['mean'].tolist() == [2.5]


def test_repetitions_are_taken_together(tmp_path):
  cases.write_run(tmp_path / '0', *cases.RUNS[0])
  cases.write_run(tmp_path / '1', *cases.RUNS[0], seed=2)
  table = rates.norm_table(_load_update_norms(tmp_path), 6)
  assert table['mean'].tolist() == [3.5]
  # 2 x 17.5 / 11.
  assert table.sd.tolist() == pytest.approx([math.sqrt(35 / 11)])


def test_block_longer_than_all_runs_is_refused(tmp_path):
  group = _load_update_norms(cases.write_run(tmp_path / 'a', *cases.RUNS[0]))
  with pytest.raises(ValueError, match='rounds of the runs, 6, found 7'):
    rates.norm_table(group, 7)


@pytest.mark.parametrize('block', [1, 3])
def test_lines_have_bars(tmp_path, block):
  groups = _load_update_norms(cases.write_all(tmp_path / 'a'))[1::2]
  table = rates.norm_table(groups, block)
  figure = rates.draw_norms(
      table, rates.norm_caption(groups, block), log_scale=True
  )
  axes = figure.axes[0]
  assert len(axes.containers) == 3 and axes.get_yscale() == 'log'
  middle = axes.containers[1].lines[0].get_xydata()
  assert middle[0].tolist() == [(1 + block) / 2, 1.0]


def test_caption_names_the_block_and_the_lost(tmp_path):
  groups = _load_update_norms(cases.write_all(tmp_path / 'a'))
  assert rates.norm_caption(groups[4:5], 3).split('; ')[-3:] == [
      '1 diverged, not drawn', r'nothing to draw of $\gamma$ = 1',
      'mean and standard deviation over blocks of 3 rounds',
  ]


def test_all_runs_may_have_diverged_update_norms(tmp_path):
  groups = _load_update_norms(cases.write_run(tmp_path / 'a', *cases.RUNS[4]))
  table = rates.norm_table(groups, 1000)
  assert table.empty
  assert not rates.draw_norms(table, 'None.').axes[0].get_lines()


@pytest.mark.parametrize('num_lines, step', [(3, 0.04), (60, 0.8 / 60)])
def test_bars_of_a_block_stay_in_it(tmp_path, num_lines, step):
  for i in range(num_lines):
    cases.write_run(tmp_path / str(i), float(i), 0.1, *cases.RUNS[0][2:])
  table = rates.norm_table(_load_update_norms(tmp_path), 3)
  figure = rates.draw_norms(table, 'It.')
  containers = figure.axes[0].containers
  first, second = (c.lines[0].get_xdata()[0] for c in containers[:2])
  assert second - first == pytest.approx(3 * step)
  assert first == pytest.approx(2.0 - (num_lines - 1) / 2 * 3 * step)
  assert first > 0.5


def test_caption_tells_of_the_decay(tmp_path):
  groups = _load_update_norms(cases.write_decay(tmp_path / 'a'))
  assert rates.norm_caption(groups, 3).split('; ')[-2].startswith(
      'decay: LocalUpdateDecay from these rates (canonical: '
  )
