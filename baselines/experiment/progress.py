"""Progress of a run: a bar on a terminal, plain lines elsewhere."""

import shutil
import sys
import time
from typing import Any, Optional

from baselines.experiment import command
from baselines.experiment import records

_SECONDS_BETWEEN_LINES = 5.0
_PARTS = 10
_BAR = (
    '{percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} [{elapsed}<{remaining}'
    '{postfix}]'
)
_SHOWN = {
    'loss_before_training': 'loss',
    'population_loss': 'f(x)',
    'cumulative_regret': 'regret',
}


class Progress:
  """Shows how far a run is, the time left and the current losses.

  On a terminal a bar; else a line at the start, about every five seconds, and
  at every tenth of the run. A run is counted in rounds, or in the queries of a
  horizon.
  """

  def __init__(self, total: int, start: int, label: str, column: str = 'round'):
    """Starts.

    Args:
      total: The last value of the column.
      start: Its value now.
      label: Stands at the beginning of plain lines.
      column: The column that tells how far a run is.
    """
    self._total = total
    self._done = start
    self._start = start
    self._label = label
    self._column = column
    self._losses: dict[str, float] = {}
    self._bar = _bar(total, start) if sys.stderr.isatty() else None
    # The first round compiles: times count from its end.
    self._first_end: Optional[tuple[int, float]] = None
    self._last_line = time.monotonic()

  def update(self, row: records.Row) -> None:
    """Takes in the row of the round just done."""
    before, self._done = self._done, int(records.number(row, self._column) or 0)
    if self._done > self._start and self._first_end is None:
      self._first_end = self._done, time.monotonic()
    for column in _SHOWN:
      value = records.number(row, column)
      if value is not None:
        self._losses[column] = value
    if self._bar is not None:
      losses = {_SHOWN[c]: f'{v:.4g}' for c, v in self._losses.items()}
      self._bar.set_postfix(losses, refresh=False)
      self._bar.update(self._done - self._bar.n)
    elif self._line_is_due(before):
      self._last_line = time.monotonic()
      command.report(self._line())

  def report(self, text: str) -> None:
    """Prints a line beside the bar."""
    if self._bar is not None:
      self._bar.write(text, file=sys.stderr)
    else:
      command.report(text)

  def close(self) -> None:
    if self._bar is not None:
      self._bar.close()

  def _line_is_due(self, before: int) -> bool:
    if not self._done:  # The model before training.
      return True
    if time.monotonic() - self._last_line >= _SECONDS_BETWEEN_LINES:
      return True
    part, last_part = (
        n * _PARTS // self._total for n in (self._done, before)
    )
    return part > last_part

  def _line(self) -> str:
    name = 'round' if self._column == 'round' else 'query'
    parts = [f'{self._label}: {name} {self._done}/{self._total}']
    parts += [
        f'{name} {self._losses[column]:.4g}'
        for column, name in _SHOWN.items()
        if column in self._losses
    ]
    if self._first_end and self._done > self._first_end[0]:
      first, ended = self._first_end
      each = (time.monotonic() - ended) / (self._done - first)
      parts.append(f'{each * (self._total - self._done):.0f} s left')
    return ', '.join(parts)


def _bar(total: int, start: int) -> Any:
  import tqdm  # pylint: disable=g-import-not-at-top

  # The losses have to fit on 80 columns, so no label. The width is asked for
  # here because tqdm takes a terminal that does not know its width for none.
  return tqdm.tqdm(
      total=total,
      initial=start,
      bar_format=_BAR,
      ncols=shutil.get_terminal_size().columns,
  )
