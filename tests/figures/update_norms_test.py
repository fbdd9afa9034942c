"""Norms over blocks: exact means and standard deviations."""

import math

import pytest

from baselines.figures import rate_runs
from baselines.figures import style
from baselines.figures import update_norms
from tests.figures import rate_cases as cases


def _load(*folders):
  return rate_runs.load_groups(folders, [update_norms.COLUMN])


def test_mean_and_deviation_of_each_block(tmp_path):
  groups = _load(cases.write_all(tmp_path / 'a'))
  table = update_norms.norm_table(groups, 3)
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
  group = _load(cases.write_run(tmp_path / 'a', *cases.RUNS[0]))
  table = update_norms.norm_table(group, 4)
  assert table.last_round.tolist() == [4] and table['mean'].tolist() == [2.5]


def test_repetitions_are_taken_together(tmp_path):
  cases.write_run(tmp_path / '0', *cases.RUNS[0])
  cases.write_run(tmp_path / '1', *cases.RUNS[0], seed=2)
  table = update_norms.norm_table(_load(tmp_path), 6)
  assert table['mean'].tolist() == [3.5]
  # 2 x 17.5 / 11.
  assert table.sd.tolist() == pytest.approx([math.sqrt(35 / 11)])


def test_block_longer_than_all_runs_is_refused(tmp_path):
  group = _load(cases.write_run(tmp_path / 'a', *cases.RUNS[0]))
  with pytest.raises(ValueError, match='rounds of the runs, 6, found 7'):
    update_norms.norm_table(group, 7)


@pytest.mark.parametrize('block', [1, 3])
def test_lines_have_bars(tmp_path, monkeypatch, block):
  figures = []
  monkeypatch.setattr(style, 'save', lambda figure, path: figures.append(
      figure
  ))
  groups = _load(cases.write_all(tmp_path / 'a'))[1::2]
  table = update_norms.norm_table(groups, block)
  update_norms.draw(
      table, update_norms.caption(groups, block), None, log_scale=True
  )
  axes = figures[0].axes[0]
  assert len(axes.containers) == 3 and axes.get_yscale() == 'log'
  middle = axes.containers[1].lines[0].get_xydata()
  assert middle[0].tolist() == [(1 + block) / 2, 1.0]


def test_caption_names_the_block_and_the_lost(tmp_path):
  groups = _load(cases.write_all(tmp_path / 'a'))
  assert update_norms.caption(groups[4:5], 3).split('; ')[-3:] == [
      '1 diverged, not drawn', r'nothing to draw of $\gamma$ = 1',
      'mean and standard deviation over blocks of 3 rounds',
  ]


def test_all_runs_may_have_diverged(tmp_path, monkeypatch):
  monkeypatch.setattr(style, 'save', lambda figure, path: None)
  groups = _load(cases.write_run(tmp_path / 'a', *cases.RUNS[4]))
  table = update_norms.norm_table(groups, 1000)
  assert table.empty
  update_norms.draw(table, 'None.', None)


@pytest.mark.parametrize('num_lines, step', [(3, 0.04), (60, 0.8 / 60)])
def test_bars_of_a_block_stay_in_it(tmp_path, monkeypatch, num_lines, step):
  figures = []
  monkeypatch.setattr(style, 'save', lambda figure, path: figures.append(
      figure
  ))
  for i in range(num_lines):
    cases.write_run(tmp_path / str(i), float(i), 0.1, *cases.RUNS[0][2:])
  table = update_norms.norm_table(_load(tmp_path), 3)
  update_norms.draw(table, 'It.', None)
  containers = figures[0].axes[0].containers
  first, second = (c.lines[0].get_xdata()[0] for c in containers[:2])
  assert second - first == pytest.approx(3 * step)
  assert first == pytest.approx(2.0 - (num_lines - 1) / 2 * 3 * step)
  assert first > 0.5


def test_caption_tells_of_the_decay(tmp_path):
  groups = _load(cases.write_decay(tmp_path / 'a'))
  assert update_norms.caption(groups, 3).split('; ')[-2].startswith(
      'decay: LocalUpdateDecay from these rates (canonical: '
  )
