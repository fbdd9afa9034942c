"""Lengths and regrets of epochs, the incomplete one left out."""

import math

import pytest

from baselines.figures import epochs
from baselines.figures import horizon_runs
from baselines.figures import style
from tests.figures import horizon_cases as cases

# Three exchanges in epoch 2, and an epoch 3 that ends with the horizon.
_LONG = (
    cases.Exchange(10, 4, 1, 1),
    cases.Exchange(20, 7, 1, 1, epoch=2, stepped=0),
    cases.Exchange(30, 9, 1, 1, epoch=2, stepped=0),
    cases.Exchange(15, 10, 1, 1, epoch=2),
    cases.Exchange(25, 12, 1, 1, epoch=3),
)


def _groups(path):
  return horizon_runs.load_groups([path], epochs.COLUMNS, ['ceal'])


def test_exchanges_of_an_epoch_are_added(tmp_path):
  cases.write_run(tmp_path / 'a', 'ceal', _LONG)
  found = epochs.run_epochs(_groups(tmp_path)[0].runs[0])
  assert found.index.tolist() == [1, 2, 3]
  assert found.queries.tolist() == [10, 65, 25]
  assert found.regret.tolist() == [4, 6, 2]


def test_table_is_of_the_runs_that_completed_the_epoch(tmp_path):
  """t_1 of 10 and 20, regrets of 4 and 6; only run 2 completed epoch 2."""
  table = epochs.epoch_table(_groups(cases.write_all(tmp_path)))
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


def test_figure_has_means_bands_and_hollow_marks(tmp_path, monkeypatch):
  drawn = []
  monkeypatch.setattr(style, 'save', lambda figure, _: drawn.append(figure))
  epochs.draw(
      epochs.epoch_table(_groups(cases.write_all(tmp_path))), 'said', 'a.png'
  )
  left, right = drawn[0].axes
  assert left.get_yscale() == 'log' and right.get_yscale() == 'linear'
  mean, hollow = left.get_lines()
  assert mean.get_ydata().tolist() == [15, 40]
  assert hollow.get_xdata().tolist() == [2]
  assert right.get_lines()[0].get_ydata().tolist() == [5, 8]
  assert len(left.collections) == len(right.collections) == 1
  assert not drawn[0].legends and drawn[0].get_supxlabel() == 'said'


def test_several_settings_have_a_legend(tmp_path, monkeypatch):
  drawn = []
  monkeypatch.setattr(style, 'save', lambda figure, _: drawn.append(figure))
  for i, clip in enumerate((True, False)):
    cases.write_run(tmp_path / f'{i}', 'ceal', _LONG, clip=clip)
  epochs.draw(epochs.epoch_table(_groups(tmp_path)), '', 'a.png')
  (legend,) = drawn[0].legends
  assert [text.get_text() for text in legend.get_texts()] == [
      'CEAL, clip False', 'CEAL, clip True'
  ]


def test_caption_says_what_is_left_out(tmp_path):
  groups = _groups(cases.write_all(tmp_path / 'a'))
  assert epochs.caption(groups, epochs.epoch_table(groups)).endswith(
      'mean of 2 runs each; sampling seeds 1-2; data seeds 1-2; band: from the '
      'least to the '
      'greatest of the runs; hollow: only of the runs that completed epoch k '
      'before T; the epoch that T cuts short is left out'
  )
  cases.write_run(tmp_path / 'b', 'ceal', _LONG)
  groups = _groups(tmp_path / 'b')
  said = epochs.caption(groups, epochs.epoch_table(groups))
  assert 'band' not in said and 'hollow' not in said


def test_no_completed_epoch_is_refused(tmp_path):
  cases.write_run(
      tmp_path / 'a', 'ceal', [cases.Exchange(9, 1, 0, 0, 0, 1, 0)]
  )
  with pytest.raises(ValueError, match='must have completed an epoch'):
    epochs.epoch_table(_groups(tmp_path))


def test_many_lines_are_told_apart_by_marks_hollow_or_not(
    tmp_path, monkeypatch
):
  drawn = []
  monkeypatch.setattr(style, 'save', lambda figure, _: drawn.append(figure))
  for i in range(13):
    cases.write_run(
        tmp_path / str(i), 'ceal', _LONG, step_size=0.1 * (i + 1)
    )
  epochs.draw(epochs.epoch_table(_groups(tmp_path)), 'said', 'a.png')
  lines = drawn[0].axes[0].get_lines()
  for line, hollow in zip(lines[::2], lines[1::2]):
    assert line.get_marker() == hollow.get_marker()
    assert hollow.get_linestyle() == 'None'
    assert hollow.get_markerfacecolor() == 'white'
  assert len({line.get_marker() for line in lines}) == 7
