"""What is drawn, in which order, and what the caption says."""

import warnings

import matplotlib.figure
import numpy as np
import pytest

from baselines.figures import load
from baselines.figures import loss
from baselines.figures import style
from tests.figures.load_test import write_run


def _runs(tmp_path):
  for i, gamma in enumerate((0.1, 0.01, 0.0)):
    write_run(tmp_path / f'{i}', client_learning_rate=gamma)
  write_run(
      tmp_path / '3', client_learning_rate=0.1, sampling_seed=2,
      rows=((0, 2.0), (2, 3.0)),
  )
  write_run(tmp_path / '4', client_learning_rate=1.0, status='diverged')
  return load.load_runs(tmp_path)


@pytest.fixture(name='drawn')
def _drawn(monkeypatch):
  figures = []

  def keep(figure, path):
    figures.append(figure)

  monkeypatch.setattr(style, 'save', keep)
  return figures


def test_lines_are_sorted_by_rate_and_diverged_ones_left_out(tmp_path, drawn):
  loss.draw(_runs(tmp_path), tmp_path / 'a.png')
  (axes,) = drawn[0].axes
  labels = [text.get_text() for text in axes.get_legend().get_texts()]
  assert labels == [
      r'$\gamma$ = 0', r'$\gamma$ = 0.01', r'$\gamma$ = 0.1'
  ]
  assert axes.get_xlabel() == 'round $t$'
  assert axes.get_ylabel() == 'population loss $f(x_t)$'


def test_repetitions_are_one_line_their_mean_in_a_band(tmp_path, drawn):
  loss.draw(_runs(tmp_path), tmp_path / 'a.png')
  (axes,) = drawn[0].axes
  line = axes.get_lines()[2]
  np.testing.assert_array_equal(line.get_xdata(), [0, 2])
  np.testing.assert_array_equal(line.get_ydata(), [2.0, (1.0 + 3.0) / 2])
  assert len(axes.collections) == 1


def test_caption_counts_runs_seeds_and_diverged_ones(tmp_path):
  text = loss.caption(_runs(tmp_path))
  assert 'task digits' in text and r'$\eta$ = 0.5' in text
  assert '5 runs; sampling seeds 1, 2; 1 diverged, not drawn' in text
  assert 'gamma' not in text and 'not finished' not in text


def test_algorithms_with_other_settings_are_told_apart(tmp_path, drawn):
  write_run(tmp_path / 'local', algorithm='local_update')
  for name in ('ceal', 'fed_avg'):
    write_run(
        tmp_path / name, algorithm=name, step_size=0.1, theta=None,
        client_learning_rate=None, server_optimizer=None,
        server_learning_rate=None,
    )
  runs = load.load_runs(tmp_path)
  for run in runs:
    for part in run.components.values():
      for name in [n for n, value in part.items() if value is None]:
        del part[name]
  assert loss.draw(runs, tmp_path / 'a.png') == 3
  texts = [line.get_label() for line in drawn[0].axes[0].get_lines()]
  assert [text.split(',')[0] for text in texts] == [
      'algorithm ceal', 'algorithm fed_avg', 'algorithm local_update'
  ]
  assert 'Theta' in texts[2] and 'Theta' not in texts[0]
  assert 'task digits' in loss.caption(runs)


def test_unfinished_runs_are_counted(tmp_path):
  write_run(tmp_path / 'a', status='interrupted')
  assert loss.caption(load.load_runs(tmp_path)).endswith('1 not finished')


def test_run_that_failed_at_once_is_counted_only(tmp_path, drawn):
  write_run(tmp_path / 'a')
  failed = write_run(tmp_path / 'b', sampling_seed=2, status='failed')
  (failed / 'metrics.csv').unlink()
  runs = load.load_runs(tmp_path)
  loss.draw(runs, tmp_path / 'a.png')
  (line,) = drawn[0].axes[0].get_lines()
  assert line.get_ydata().tolist() == [2.0, 1.0]
  assert loss.caption(runs).endswith('1 not finished')


def test_setting_with_one_diverged_seed_is_left_out(tmp_path, drawn):
  write_run(tmp_path / 'a')
  write_run(tmp_path / 'b', sampling_seed=2, status='diverged')
  write_run(tmp_path / 'c', client_learning_rate=0.0)
  loss.draw(load.load_runs(tmp_path), tmp_path / 'a.png')
  assert len(drawn[0].axes[0].get_lines()) == 1


def test_only_diverged_runs_give_a_figure_that_says_so(tmp_path):
  write_run(tmp_path / 'a', status='diverged')
  assert loss.draw(load.load_runs(tmp_path), tmp_path / 'a.png') == 0
  assert (tmp_path / 'a.png').exists()


def test_quantity_without_values_is_refused(tmp_path):
  write_run(tmp_path / 'a')
  with pytest.raises(ValueError, match="found 'test_accuracy' in none of 1"):
    loss.draw(
        load.load_runs(tmp_path), tmp_path / 'a.png', quantity='test_accuracy'
    )


@pytest.mark.parametrize('ending, start', [
    ('png', b'\x89PNG'), ('pdf', b'%PDF'), ('svg', b'<?xml'),
])
def test_ending_says_the_format(tmp_path, ending, start):
  path = tmp_path / 'new' / f'loss.{ending}'
  loss.draw(_runs(tmp_path / 'runs'), path, log_scale=True)
  assert path.read_bytes().startswith(start)
  assert len(list(path.parent.iterdir())) == 1


def test_long_legend_stands_beside_the_axes(tmp_path, drawn):
  for i in range(8):
    write_run(tmp_path / f'{i}', client_learning_rate=float(i))
  loss.draw(load.load_runs(tmp_path), tmp_path / 'a.png')
  figure: matplotlib.figure.Figure = drawn[0]
  figure.draw_without_rendering()
  legend = figure.axes[0].get_legend().get_window_extent()
  assert legend.x0 >= figure.axes[0].get_window_extent().x1


def test_60_lines_have_a_legend_of_their_own_room(tmp_path, drawn):
  for i in range(60):
    write_run(tmp_path / f'{i}', client_learning_rate=float(i))
  assert loss.draw(load.load_runs(tmp_path), tmp_path / 'a.png') == 60
  figure: matplotlib.figure.Figure = drawn[0]
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


def test_long_labels_do_not_cover_the_lines(tmp_path, drawn):
  for i, theta in enumerate(('1:10', ','.join('0' * 20) + ',1')):
    write_run(tmp_path / f'{i}', theta=theta, client_learning_rate=0.1 * i)
  loss.draw(load.load_runs(tmp_path), tmp_path / 'a.png')
  (axes,), (legend,) = drawn[0].axes, drawn[0].legends
  drawn[0].draw_without_rendering()
  assert axes.get_legend() is None
  assert legend.get_window_extent().x0 >= axes.get_window_extent().x1


def test_large_and_small_rates_are_one_number(tmp_path, drawn):
  for i, gamma in enumerate((1e-5, 1e4, 1e6)):
    write_run(tmp_path / f'{i}', client_learning_rate=gamma)
  loss.draw(load.load_runs(tmp_path), tmp_path / 'a.png')
  labels = [line.get_label() for line in drawn[0].axes[0].get_lines()]
  assert labels == [
      r'$\gamma$ = 1e-5', r'$\gamma$ = 10000', r'$\gamma$ = 1e6'
  ]


def test_lines_that_the_usual_settings_do_not_tell_apart_name_others(
    tmp_path, drawn
):
  for i, (gamma, rounds) in enumerate(((0.0, 2), (0.1, 2), (0.1, 4))):
    write_run(tmp_path / f'{i}', client_learning_rate=gamma, rounds=rounds)
  runs = load.load_runs(tmp_path)
  loss.draw(runs, tmp_path / 'a.png')
  loss.draw(runs[:2], tmp_path / 'a.png')
  labels = [
      [line.get_label() for line in figure.axes[0].get_lines()]
      for figure in drawn
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
  runs = [load.load_run(tmp_path / 'a') for _ in range(2)]
  with pytest.raises(ValueError, match='runs must not repeat a run'):
    loss.draw(runs, tmp_path / 'a.png')
