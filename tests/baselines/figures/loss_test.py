"""What is drawn, in which order, and what the caption says."""

import matplotlib.figure
import numpy as np
import pytest

from baselines.figures import load
from baselines.figures import loss
from baselines.figures import style
from tests.baselines.figures.load_test import write_run


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
  loss.draw(load.load_runs(tmp_path), tmp_path / 'a.png')
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
