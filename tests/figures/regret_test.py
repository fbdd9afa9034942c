"""Lines, bands, axes and captions of the figures of regret."""

import numpy as np
import pandas as pd
import pytest

from baselines.figures import horizon_runs
from baselines.figures import regret
from baselines.figures import regret_curves
from baselines.figures import style
from tests.figures import horizon_cases as cases


@pytest.fixture(name='drawn')
def _drawn(monkeypatch):
  figures = []
  monkeypatch.setattr(style, 'save', lambda figure, _: figures.append(figure))
  return figures


def _groups(tmp_path):
  cases.write_all(tmp_path)
  return horizon_runs.load_groups([tmp_path], regret_curves.COLUMNS)


def _labels(figure):
  return [text.get_text() for text in figure.legends[0].get_texts()]


def test_mean_against_time_in_a_band(tmp_path, drawn):
  curves = regret_curves.curve_table(_groups(tmp_path))
  regret.draw_against_time(curves, 'said', 'a.png', log_scale=False)
  (axes,) = drawn[0].axes
  assert _labels(drawn[0]) == ['FedAvg', 'FedPAQ', 'CEAL']
  line = axes.get_lines()[0]
  assert line.get_xdata().tolist() == [0, 50, 100]
  assert line.get_ydata().tolist() == [0, 15, 19]
  band = axes.collections[0].get_paths()[0].vertices
  half = np.sqrt(50)  # The deviation of 10 and 20.
  assert band[:, 1].min() == 0
  assert band[:, 1].max() == pytest.approx(19 + half)
  assert axes.get_yscale() == 'linear' and drawn[0].get_supxlabel() == 'said'


def test_logarithm_leaves_out_the_start_and_bends_what_is_linear(
    tmp_path, drawn
):
  curves = regret_curves.curve_table(_groups(tmp_path))
  regret.draw_against_time(curves, '', 'a.png', log_scale=True)
  (axes,) = drawn[0].axes
  assert axes.get_yscale() == 'log'
  line = axes.get_lines()[0]
  found = dict(zip(line.get_xdata(), line.get_ydata()))
  assert min(found) == pytest.approx(0.2) and min(found.values()) > 0
  assert (found[25], found[50], found[75], found[100]) == (7.5, 15, 17, 19)


def test_mean_regret_against_mean_bits(tmp_path, drawn):
  curves = regret_curves.curve_table(_groups(tmp_path))
  regret.draw_against_bits(curves, 'said', 'a.png', log_scale=False)
  (axes,) = drawn[0].axes
  assert axes.get_xscale() == 'log' and _labels(drawn[0])[2] == 'CEAL'
  line = axes.get_lines()[2]
  assert line.get_xdata().tolist() == [5, 10, 14, 19, 19]
  assert line.get_ydata().tolist() == [3.5, 6, 10, 13, 18]
  assert line.get_drawstyle() == 'steps-pre'


def test_nothing_sent_is_refused():
  curves = pd.DataFrame({'cumulative_uplink_bits_mean': [0.0, 0.0]})
  with pytest.raises(ValueError, match='must have sent bits'):
    regret.draw_against_bits(curves, '', 'a.png', log_scale=False)


def test_captions_say_what_is_shown(tmp_path):
  groups = _groups(tmp_path)
  said = '; '.join(horizon_runs.describe(groups))
  assert regret.caption_against_time(groups) == (
      f'{said}; band: one standard deviation; linear between exchanges'
  )
  assert regret.caption_against_bits(groups) == (
      f'{said}; at each time, mean regret against mean bits; dot: at T; codes: '
      'FedPAQ fixed_width, CEAL signed_unary'
  )
  single = [horizon_runs.RunGroup(groups[0].all_runs[:1])]
  assert 'band' not in regret.caption_against_time(single)


def test_many_lines_are_told_apart_and_their_code_is_named_once(
    tmp_path, drawn
):
  for i in range(13):
    cases.write_run(
        tmp_path / str(i), 'ceal', cases.CEAL[0], step_size=0.1 * (i + 1)
    )
  groups = horizon_runs.load_groups([tmp_path], regret_curves.COLUMNS)
  said = regret.caption_against_bits(groups)
  assert said.endswith('dot: at T; code: signed_unary')
  curves = regret_curves.curve_table(groups)
  regret.draw_against_time(curves, 'said', 'a.png', log_scale=False)
  regret.draw_against_bits(curves, said, 'a.png', log_scale=False)
  for figure in drawn:
    lines = figure.axes[0].get_lines()
    assert len({line.get_marker() for line in lines}) == 7
    assert len(_labels(figure)) == 13
