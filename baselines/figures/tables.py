"""Tables: on the screen, as CSV files and in Markdown."""

from collections.abc import Sequence
import math
import pathlib
from typing import Any, NamedTuple, Optional

import pandas as pd

from baselines import files


class Drawn(NamedTuple):
  """What a figure or a table hands to the command, which writes the files.

  Attributes:
    numbers: The numbers behind it, for `--csv`.
    figure: A Matplotlib figure, or
    texts: the cells of a table, which is printed as well, or
    content: the text of a file.
    notes: Paragraphs below the table.
    printed: A text for the terminal.
    has_lines: Whether anything was drawn.
  """

  numbers: Optional[pd.DataFrame] = None
  figure: Any = None
  texts: Optional[pd.DataFrame] = None
  content: Optional[str] = None
  notes: Sequence[str] = ()
  printed: str = ''
  has_lines: bool = True


def table_text(table: pd.DataFrame) -> str:
  """Returns the table in columns, numbers to six digits, nothing as a dash."""
  return table.to_string(
      index=False, na_rep='-', float_format=lambda value: f'{value:.6g}'
  )


def save(table: pd.DataFrame, path: pathlib.Path) -> None:
  """Writes a table as CSV without index, numbers to all their digits."""
  files.write_whole(path, table.to_csv(index=False, lineterminator='\n'))


def markdown(table: pd.DataFrame, notes: Sequence[str] = ()) -> str:
  """Returns a table of texts in Markdown, and a paragraph for each note."""
  rows = [list(table.columns), ['---'] * len(table.columns)]
  rows += [[c.replace('|', r'\|') for c in row] for row in table.values]
  lines = [f'| {" | ".join(row)} |\n' for row in rows]
  return ''.join([*lines, *(f'\n{note}\n' for note in notes)])


def number_text(value: float, like: float) -> str:
  """Returns a number to the place of the fourth digit of `like`.

  At least to the ones, at most to six decimals; NaN becomes a dash.
  """
  if math.isnan(value):
    return '-'
  magnitude = abs(like) if math.isfinite(like) else 0.0
  first = math.floor(math.log10(magnitude)) if magnitude else 0
  return f'{value:.{min(max(3 - first, 0), 6)}f}'


def mean_text(mean: float, deviation: float) -> str:
  """Returns `mean (deviation)`; a deviation that is NaN is left out."""
  text = number_text(mean, mean)
  if math.isnan(deviation):
    return text
  return f'{text} ({number_text(deviation, mean)})'


def percent_text(value: float) -> str:
  """Returns a number of percents to one decimal; NaN becomes a dash."""
  return '-' if math.isnan(value) else f'{value:.1f}%'
