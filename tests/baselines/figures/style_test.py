"""How figures look."""

import matplotlib
import pytest

from baselines.figures import style


def test_colours_are_distinct_and_from_dark_to_light():
  colours = style.colours(6)
  assert len(set(colours)) == 6
  brightness = [0.3 * r + 0.6 * g + 0.1 * b for r, g, b, _ in colours]
  assert brightness == sorted(brightness)
  assert len(style.colours(1)) == 1 and not style.colours(0)


def test_long_captions_are_broken():
  figure = style.new_figure()
  style.add_caption(figure, 'word ' * 60)
  lines = figure.get_supxlabel().splitlines()
  assert len(lines) > 2 and max(map(len, lines)) <= 100


def test_settings_stay_inside_the_context():
  before = matplotlib.rcParams['axes.grid']
  with style.context():
    assert matplotlib.rcParams['axes.grid']
  assert matplotlib.rcParams['axes.grid'] == before


def test_equal_figures_are_equal_files(tmp_path):
  for name in ('a', 'b'):
    with style.context():
      figure = style.new_figure()
      figure.add_subplot().plot([1, 2])
      style.save(figure, tmp_path / f'{name}.svg')
  first = (tmp_path / 'a.svg').read_bytes()
  assert first == (tmp_path / 'b.svg').read_bytes()


def test_unknown_format_is_refused(tmp_path):
  with pytest.raises(ValueError, match='xyz'):
    style.save(style.new_figure(), tmp_path / 'a.xyz')
