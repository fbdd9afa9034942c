"""How figures look: sizes, colours, captions."""

import contextlib
import pathlib
import textwrap
from typing import Sequence

import matplotlib
from matplotlib import figure

_SIZE = (6.4, 4.4)
_CAPTION_WIDTH = 90
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


def add_caption(drawn: figure.Figure, text: str) -> None:
  """Puts a caption under the axes."""
  lines = textwrap.fill(text, _CAPTION_WIDTH)
  drawn.supxlabel(lines, fontsize=8, color='0.3')


def save(drawn: figure.Figure, path: pathlib.Path) -> None:
  """Writes the figure; the ending of `path` says as what (png, pdf, svg).

  Raises:
    ValueError: If there is no such format.
  """
  path.parent.mkdir(parents=True, exist_ok=True)
  partial = path.with_name(f'.partial.{path.name}')
  metadata = {'Date': None} if path.suffix == '.svg' else None
  drawn.savefig(partial, dpi=150, metadata=metadata)
  partial.replace(path)
