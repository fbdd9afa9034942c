"""How figures look: sizes, colours, axes, captions."""

from collections.abc import Iterator, Sequence
import contextlib
import io
import math
import pathlib
import textwrap
from typing import Any

import matplotlib
from matplotlib import figure
import pandas as pd

from baselines import files

_SIZE = (6.4, 4.4)
_CAPTION_WIDTH = 90
# A longer caption makes the figure higher, by this many inches per line.
_CAPTION_LINES = 6
_CAPTION_INCHES = 0.14
# About as many letters of a legend fit into an inch, and into the sample of a
# line with the space around it.
_LETTERS_PER_INCH = 12
_SAMPLE_LETTERS = 7
# More rows above the axes would leave too little of them; a column beside them
# may be as high as a page.
_ROWS_ABOVE = 6
_ROWS_BESIDE = 30
_SMALL_FONT = 8.0
_LONG_SAMPLE = 3.5  # Letters: shows the dashes beside a mark.
_LEGEND_MARGIN = 0.3  # Inches.
_BESIDE = 'legend-beside'
# So many lines are told apart by colour and dashes, more have marks as well.
MAX_UNMARKED = 12
# With the dashes they make 28 pairs: lines of an equal pair differ in colour.
_MARKERS = ('o', 's', '^', 'v', 'D', 'P', 'X')
_MARKS_ON_A_LINE = 8
_DASHES = ('solid', (0, (6, 2)), (0, (2, 1)), (0, (6, 1, 1, 1)))
_SETTINGS = {
    'axes.grid': True,
    'axes.spines.right': False,
    'axes.spines.top': False,
    'font.size': 10.0,
    'grid.alpha': 0.3,
    'legend.frameon': False,
    'lines.linewidth': 1.6,
    # Text in vector files stays text, and files of equal figures are equal.
    'pdf.fonttype': 42,
    'svg.hashsalt': 'localupdate',
}


def context() -> contextlib.AbstractContextManager:
  """Returns the context in which figures are to be made and saved."""
  return matplotlib.rc_context(_SETTINGS)


def new_figure(size: tuple[float, float] = _SIZE) -> figure.Figure:
  """Returns an empty figure of a size in inches; it needs no display."""
  return figure.Figure(figsize=size, layout='constrained')


def new_axes() -> tuple[figure.Figure, Any]:
  """Returns a figure of the usual size and its only axes."""
  drawn = new_figure()
  return drawn, drawn.add_subplot()


def lines(
    table: pd.DataFrame, column: str
) -> Iterator[tuple[str, pd.DataFrame, dict[str, Any]]]:
  """Yields name, rows and look of each line, in the order of the table.

  The table has the lines, if any, one below the other, named in `column`.
  """
  names = [] if table.empty else table[column].unique()
  for name, look in zip(names, looks(len(names))):
    yield name, table[table[column] == name], look


def set_round_axes(axes: Any, label: str, log_scale: bool) -> None:
  """Names the axes of a quantity against rounds."""
  axes.set_xlabel(r'round $t$')
  axes.xaxis.get_major_locator().set_params(integer=True)
  axes.set_ylabel(label)
  axes.set_yscale('log' if log_scale else 'linear')


def colours(count: int) -> Sequence[tuple[float, ...]]:
  """Returns `count` colours in an order that can be seen, dark to light."""
  scale = matplotlib.colormaps['viridis']
  return [scale(0.9 * i / max(count - 1, 1)) for i in range(count)]


def looks(count: int) -> Sequence[dict[str, Any]]:
  """Returns colour and dashes of `count` lines: two ways to tell them apart.

  Many lines have a marker and its size as well. The last line is the darkest,
  and solid: what is compared comes after what it is compared with.
  """
  found: list[dict[str, Any]] = [
      {'color': colour, 'linestyle': _DASHES[i % len(_DASHES)]}
      for i, colour in enumerate(colours(count))
  ]
  if count > MAX_UNMARKED:
    for i, look in enumerate(found):
      look.update(marker=_MARKERS[i % len(_MARKERS)], markersize=4)
  return found[::-1]


def mark_every(num_points: int) -> int:
  """Returns n where each n-th point of a line has its marker."""
  return max(num_points // _MARKS_ON_A_LINE, 1)


def draw_band(
    axes: Any, x: Any, low: Any, high: Any, colour: tuple[float, ...]
) -> None:
  """Draws a band from `low` to `high`, with gaps where they are NaN."""
  axes.fill_between(x, low, high, color=colour, alpha=0.2, linewidth=0)


def add_legend(drawn: figure.Figure, axes: Any) -> None:
  """Adds the legend of `axes` above all axes, where it hides no line.

  One that is too high or too wide for that stands beside them: see
  `add_legend_beside`.
  """
  lines, labels = axes.get_legend_handles_labels()
  longest = max(map(len, labels)) + _SAMPLE_LETTERS
  columns = int(drawn.get_figwidth() * _LETTERS_PER_INCH / longest)
  columns = min(max(columns, 1), len(labels))
  if math.ceil(len(labels) / columns) <= _ROWS_ABOVE:
    legend = drawn.legend(
        lines, labels, loc='outside upper center', ncols=columns
    )
    if legend.get_window_extent().width <= drawn.bbox.width:
      return
    legend.remove()
  add_legend_beside(drawn, axes)


def add_legend_beside(drawn: figure.Figure, axes: Any) -> None:
  """Adds the legend of `axes` at the right of all axes, in small letters.

  The figure becomes wider by the legend, and as high as it is, so that the axes
  keep their size however many lines there are. Comes after all other changes
  of the figure's size.
  """
  lines, labels = axes.get_legend_handles_labels()
  legend = drawn.legend(
      lines, labels, loc='outside right upper', fontsize=_SMALL_FONT,
      handlelength=_LONG_SAMPLE,
      ncols=math.ceil(len(labels) / _ROWS_BESIDE),
  )
  legend.set_gid(_BESIDE)
  extent = legend.get_window_extent()
  width, height = extent.width / drawn.dpi, extent.height / drawn.dpi
  drawn.set_size_inches(
      drawn.get_figwidth() + width,
      max(drawn.get_figheight(), height + _LEGEND_MARGIN),
  )


def add_caption(drawn: figure.Figure, text: str) -> None:
  """Puts a caption under the axes; a long one makes the figure higher.

  Comes after the legend, which it leaves its room if that stands beside them.
  """
  lines = textwrap.wrap(text, _CAPTION_WIDTH)
  taken = sum(
      legend.get_window_extent().width
      for legend in drawn.legends
      if legend.get_gid() == _BESIDE
  )
  middle = 0.5 - 0.5 * taken / drawn.bbox.width
  drawn.supxlabel('\n'.join(lines), x=middle, fontsize=8, color='0.3')
  more = max(len(lines) - _CAPTION_LINES, 0)
  drawn.set_size_inches(
      drawn.get_figwidth(), drawn.get_figheight() + more * _CAPTION_INCHES
  )


def finish(drawn: figure.Figure, axes: Any, caption: str) -> figure.Figure:
  """Adds legend and caption to a figure of lines, and returns it."""
  if axes.get_legend_handles_labels()[1]:
    add_legend(drawn, axes)
  add_caption(drawn, caption)
  return drawn


def save(drawn: figure.Figure, path: pathlib.Path) -> None:
  """Writes the figure in the format of its ending; ValueError if unknown."""
  metadata = {'Date': None} if path.suffix == '.svg' else None
  content = io.BytesIO()
  drawn.savefig(content, format=path.suffix[1:], dpi=150, metadata=metadata)
  files.write_whole(path, content.getvalue())
