"""How figures look: sizes, colours, captions."""

import contextlib
import io
import pathlib
import textwrap
from typing import Any, Sequence

import matplotlib
from matplotlib import figure

from baselines import files

_SIZE = (6.4, 4.4)
_CAPTION_WIDTH = 90
# About as many letters of a legend fit into an inch, and into the sample of a
# line with the space around it.
_LETTERS_PER_INCH = 12
_SAMPLE_LETTERS = 7
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


def new_figure() -> figure.Figure:
  """Returns an empty figure of the usual size; it needs no display."""
  return figure.Figure(figsize=_SIZE, layout='constrained')


def colours(count: int) -> Sequence[tuple[float, ...]]:
  """Returns `count` colours in an order that can be seen, dark to light."""
  scale = matplotlib.colormaps['viridis']
  return [scale(0.9 * i / max(count - 1, 1)) for i in range(count)]


def looks(count: int) -> Sequence[dict[str, Any]]:
  """Returns colour and dashes of `count` lines: two ways to tell them apart.

  The last line is the darkest, and solid: what is compared comes after what it
  is compared with.
  """
  return [
      {'color': colour, 'linestyle': _DASHES[i % len(_DASHES)]}
      for i, colour in enumerate(colours(count))
  ][::-1]


def draw_band(
    axes: Any, x: Any, low: Any, high: Any, colour: tuple[float, ...]
) -> None:
  """Draws a band from `low` to `high`, with gaps where they are NaN."""
  axes.fill_between(x, low, high, color=colour, alpha=0.2, linewidth=0)


def add_legend(drawn: figure.Figure, axes: Any) -> None:
  """Adds the legend of `axes` above all axes, where it hides no line."""
  lines, labels = axes.get_legend_handles_labels()
  longest = max(map(len, labels)) + _SAMPLE_LETTERS
  columns = int(drawn.get_figwidth() * _LETTERS_PER_INCH / longest)
  columns = min(max(columns, 1), len(labels))
  drawn.legend(lines, labels, loc='outside upper center', ncols=columns)


def add_caption(drawn: figure.Figure, text: str) -> None:
  """Puts a caption under the axes."""
  lines = textwrap.fill(text, _CAPTION_WIDTH)
  drawn.supxlabel(lines, fontsize=8, color='0.3')


def save(drawn: figure.Figure, path: pathlib.Path) -> None:
  """Writes the figure; the ending of `path` says as what (png, pdf, svg).

  Raises:
    ValueError: If there is no such format.
  """
  metadata = {'Date': None} if path.suffix == '.svg' else None
  content = io.BytesIO()
  drawn.savefig(content, format=path.suffix[1:], dpi=150, metadata=metadata)
  files.write_whole(path, content.getvalue())
