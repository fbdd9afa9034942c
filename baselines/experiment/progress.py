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
_SHOWN = {'loss_before_training': 'loss', 'population_loss': 'f(x)'}


class Progress:
  """Shows the round, the time left and the current losses.

  On a terminal a bar; else a line about every five seconds and every tenth of
  the rounds.
  """

  def __init__(self, rounds: int, start: int, label: str):
    """Starts.

    Args:
      rounds: Rounds in all.
      start: The round that is already done.
      label: Stands at the beginning of plain lines.
    """
    self._rounds = rounds
    self._start = start
    self._label = label
    self._losses: dict[str, float] = {}
    self._bar = _bar(rounds, start) if sys.stderr.isatty() else None
    # The first round compiles: times count from its end.
    self._first_end: Optional[tuple[int, float]] = None
    self._last_line = time.monotonic()

  def update(self, row: records.Row) -> None:
    """Takes in the row of the round just done."""
    round_num = int(row['round'])
    if round_num > self._start and self._first_end is None:
      self._first_end = round_num, time.monotonic()
    for column in _SHOWN:
      value = records.number(row, column)
      if value is not None:
        self._losses[column] = value
    if self._bar is not None:
      losses = {_SHOWN[c]: f'{v:.4g}' for c, v in self._losses.items()}
      self._bar.set_postfix(losses, refresh=False)
      self._bar.update(round_num - self._bar.n)
    elif self._line_is_due(round_num):
      self._last_line = time.monotonic()
      command.report(self._line(round_num))

  def report(self, text: str) -> None:
    """Prints a line beside the bar."""
    if self._bar is not None:
      self._bar.write(text, file=sys.stderr)
    else:
      command.report(text)

  def close(self) -> None:
    if self._bar is not None:
      self._bar.close()

  def _line_is_due(self, round_num: int) -> bool:
    if time.monotonic() - self._last_line >= _SECONDS_BETWEEN_LINES:
      return True
    part = round_num * _PARTS // self._rounds
    return part > (round_num - 1) * _PARTS // self._rounds

  def _line(self, round_num: int) -> str:
    parts = [f'{self._label}: round {round_num}/{self._rounds}']
    parts += [
        f'{name} {self._losses[column]:.4g}'
        for column, name in _SHOWN.items()
        if column in self._losses
    ]
    if self._first_end and round_num > self._first_end[0]:
      first, ended = self._first_end
      per_round = (time.monotonic() - ended) / (round_num - first)
      parts.append(f'{per_round * (self._rounds - round_num):.0f} s left')
    return ', '.join(parts)


def _bar(rounds: int, start: int) -> Any:
  import tqdm  # pylint: disable=g-import-not-at-top

  # The losses have to fit on 80 columns, so no label. The width is asked for
  # here because tqdm takes a terminal that does not know its width for none.
  return tqdm.tqdm(
      total=rounds,
      initial=start,
      bar_format=_BAR,
      ncols=shutil.get_terminal_size().columns,
  )
