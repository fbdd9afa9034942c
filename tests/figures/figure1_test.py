"""What the two panels of Figure 1 show."""

from fractions import Fraction
import warnings

import numpy as np
import pytest

from baselines.figures import figure1
from baselines.figures import reciprocal_curves
from baselines.figures import style

_RUN = reciprocal_curves.RunSettings(
    server_learning_rate=Fraction(1, 50), start=0.5, num_rounds=60, seed=1
)


@pytest.fixture(name='curves', scope='module')
def _curves():
  rates = [
      reciprocal_curves.run_curve(_RUN, Fraction(g), 4)
      for g in ('0', '1/4', '1.1')
  ]
  steps = [
      reciprocal_curves.run_curve(_RUN, Fraction(1, 4), k) for k in (1, 10)
  ]
  return rates, steps


def test_panels_hold_limits_runs_means_and_minimizers(curves, monkeypatch):
  figures = []
  monkeypatch.setattr(style, 'save', lambda figure, path: figures.append(
      figure
  ))
  figure1.draw(*curves, _RUN, None)
  assert len(figures[0].axes) == 2
  for axes, drawn in zip(figures[0].axes, curves):
    lines = [np.asarray(line.get_ydata(), float) for line in axes.get_lines()]
    assert len(lines) == 2 + 3 * len(drawn)
    assert lines[0].tolist() == [5.0 / 7.0] * 2
    assert lines[1].tolist() == [4.0 / 5.0] * 2
    for i, curve in enumerate(drawn):
      iterates, expected, limit = lines[2 + 3 * i : 5 + 3 * i]
      np.testing.assert_array_equal(iterates, curve.iterates)
      np.testing.assert_array_equal(expected, curve.expected)
      assert limit.tolist() == [curve.minimizer] * 2


def test_legends_say_what_varies(curves, monkeypatch):
  figures = []
  monkeypatch.setattr(style, 'save', lambda figure, path: figures.append(
      figure
  ))
  figure1.draw(*curves, _RUN, None)
  legends = [axes.get_legend() for axes in figures[0].axes]
  texts = [[t.get_text() for t in legend.get_texts()] for legend in legends]
  assert texts[0] == [
      '$x^*$ $= 5/7$', '$c$ $= 4/5$', r'$\gamma = 0$', r'$\gamma = 0.25$',
      r'$\gamma = 1.1$',
  ]
  assert texts[1][2:] == ['$K = 1$', '$K = 10$']
  titles = [legend.get_title().get_text() for legend in legends]
  assert titles == ['$K = 4$', r'$\gamma = 0.25$']


def test_caption_is_broken_between_the_formulas(curves, tmp_path):
  text = figure1.caption(_RUN)
  assert r'$\eta$ = 0.02' in text and 'seed 1' in text
  figure = style.new_figure()
  style.add_caption(figure, text)
  for line in figure.get_supxlabel().splitlines():
    assert line.count('$') % 2 == 0
  figure1.draw(*curves, _RUN, tmp_path / 'a.svg')
  assert (tmp_path / 'a.svg').read_bytes().startswith(b'<?xml')


def test_many_curves_make_the_figure_higher(curves, monkeypatch):
  figures = []
  monkeypatch.setattr(style, 'save', lambda figure, path: figures.append(
      figure
  ))
  rates, steps = curves
  figure1.draw(rates, steps, _RUN, None)
  many = [rates[1]._replace(client_learning_rate=Fraction(i, 10**5))
          for i in range(60)]
  figure1.draw(many, steps, _RUN, None)
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
