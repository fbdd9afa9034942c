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


def test_lines_differ_in_colour_and_dashes_and_the_last_is_dark_and_solid():
  looks = style.looks(5)
  assert looks[-1] == {'color': style.colours(5)[0], 'linestyle': 'solid'}
  assert len({look['color'] for look in looks}) == 5
  assert all(
      a['linestyle'] != b['linestyle'] for a, b in zip(looks, looks[1:])
  )


@pytest.mark.parametrize('names', [
    ['Minibatch-SGD', 'FedAvg', 'FedPAQ', 'FedCOM', 'CEAL'],
    [f'a label that is so long that two of them are too many {i}'
     for i in range(6)],
    ['a'],
])
def test_legends_stand_above_the_axes_and_inside_the_figure(names):
  figure = style.new_figure()
  axes = figure.add_subplot()
  for name in names:
    axes.plot([0, 1], [0, 1], label=name)
  style.add_legend(figure, axes)
  figure.draw_without_rendering()
  legend = figure.legends[0].get_window_extent()
  assert legend.y0 >= axes.get_window_extent().y1
  assert legend.x0 >= 0 and legend.x1 <= figure.bbox.x1


def test_band_is_of_the_colour_and_height_asked_for():
  axes = style.new_figure().add_subplot()
  style.draw_band(axes, [0, 1], [1.0, 2.0], [3.0, 5.0], (1.0, 0.0, 0.0, 1.0))
  (band,) = axes.collections
  heights = band.get_paths()[0].vertices[:, 1]
  assert (heights.min(), heights.max()) == (1.0, 5.0)
  assert band.get_facecolor()[0].tolist() == [1.0, 0.0, 0.0, 0.2]
