"""How figures look."""

import warnings

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


def _figure_of(num_lines, name='line'):
  figure = style.new_figure()
  axes = figure.add_subplot()
  for i, look in enumerate(style.looks(num_lines)):
    axes.plot([0, 1, 2], [i, 1, 2], label=f'{name} {i}', **look)
  axes.set_xlabel('round')
  return figure, axes


def _drawn(figure):
  """Draws the figure; a layout that does not fit is an error."""
  with warnings.catch_warnings():
    warnings.simplefilter('error')
    figure.draw_without_rendering()
  return figure


@pytest.mark.parametrize('num_lines', [17, 31, 60])
def test_many_lines_have_a_legend_beside_axes_that_keep_their_size(num_lines):
  few, few_axes = _figure_of(2)
  style.add_caption(few, 'said')
  _drawn(few)
  figure, axes = _figure_of(num_lines, r'$\gamma=0.01, \eta=0.03162$, rounds')
  style.add_legend(figure, axes)
  style.add_caption(figure, 'said')
  _drawn(figure)
  (legend,) = figure.legends
  assert len(legend.get_texts()) == num_lines
  place, room = legend.get_window_extent(), axes.get_window_extent()
  assert place.x0 >= room.x1 and place.x1 <= figure.bbox.x1
  assert 0 <= place.y0 and place.y1 <= figure.bbox.y1
  least = few_axes.get_window_extent()
  assert room.width >= 0.95 * least.width
  assert room.height >= 0.95 * least.height
  assert {text.get_fontsize() for text in legend.get_texts()} == {8.0}
  # A page is not longer: 30 rows, 5.4 inches.
  assert figure.get_figheight() < 6.0


def test_few_lines_keep_the_usual_size():
  figure, axes = _figure_of(12)
  style.add_legend(figure, axes)
  style.add_caption(figure, 'word ' * 60)
  assert figure.get_size_inches().tolist() == [6.4, 4.4]


def test_label_wider_than_the_figure_stands_beside_the_axes():
  figure, axes = _figure_of(2, 'very ' * 30)
  style.add_legend(figure, axes)
  _drawn(figure)
  legend = figure.legends[0].get_window_extent()
  assert len(figure.legends) == 1
  assert legend.x0 >= axes.get_window_extent().x1
  assert legend.x1 <= figure.bbox.x1


def test_caption_leaves_the_legend_its_room():
  figure, axes = _figure_of(60, 'a')
  style.add_legend(figure, axes)
  style.add_caption(figure, 'many words ' * 60)
  _drawn(figure)
  (caption,) = [t for t in figure.texts if 'many words' in t.get_text()]
  legend = figure.legends[0].get_window_extent()
  assert caption.get_window_extent().x1 <= legend.x0


def test_long_captions_make_the_figure_higher_by_their_lines():
  figure, axes = _figure_of(2)
  style.add_caption(figure, 'word ' * 18 * 20)
  assert len(figure.get_supxlabel().splitlines()) == 20
  assert figure.get_figheight() == pytest.approx(4.4 + 14 * 0.14)
  _drawn(figure)
  assert axes.get_window_extent().height > 250


@pytest.mark.parametrize('num_lines', [13, 60])
def test_no_two_of_many_lines_look_alike(num_lines):
  looks = style.looks(num_lines)
  assert looks[-1]['linestyle'] == 'solid' and looks[-1]['marker'] == 'o'
  pairs = [(str(look['linestyle']), look['marker']) for look in looks]
  # Lines of an equal pair are 28 colours apart.
  for i, pair in enumerate(pairs):
    assert pair not in pairs[i + 1 : i + 28]
  assert 'marker' not in style.looks(12)[0]


def test_marks_are_few():
  assert [style.mark_every(n) for n in (1, 8, 16, 4000)] == [1, 1, 2, 500]
