"""What ends a run before its last round: divergence, or a signal."""

import math
import signal
import threading
from typing import Optional

from baselines.experiment import command
from baselines.experiment import records

_LOSSES = ('loss_before_training', 'population_loss')


class DivergenceMonitor:
  """Tells when a run has diverged.

  It has if a loss, the norm of the update or a regret is not finite, or if a
  loss is more than `factor` times its own first value (where that is positive).
  It depends on the rows of metrics.csv alone, so a continued run, which shows
  it the rows kept, decides as if it had never stopped.
  """

  def __init__(self, factor: float):
    """Makes a monitor.

    Args:
      factor: The multiple of the first value; 0 for no limit but infinity.
    """
    self._factor = factor
    self._first: dict[str, float] = {}

  def observe(self, row: records.Row) -> Optional[str]:
    """Looks at the next row.

    Returns:
      What diverged, as a sentence, or None.
    """
    for column in (*_LOSSES, 'update_norm', 'cumulative_regret', 'last_regret'):
      value = records.number(row, column)
      if value is not None and not math.isfinite(value):
        return f'{column} is {value}'
    for column in _LOSSES:
      value = records.number(row, column)
      if value is None:
        continue
      first = self._first.setdefault(column, value)
      if self._factor and first > 0.0 and value > self._factor * first:
        return (
            f'{column} is {value:g}, more than {self._factor:g} times its '
            f'first value {first:g}'
        )
    return None


class Interruption:
  """Turns SIGINT and SIGTERM into a request to stop after the round.

  A context manager. The first signal sets `requested` and gives the signals
  back to their former handlers, so a second one stops the process at once.
  """

  _SIGNALS = (signal.SIGINT, signal.SIGTERM)

  def __init__(self):
    self.requested = False
    self._former = {}

  def __enter__(self) -> 'Interruption':
    # Python lets only the main thread set handlers.
    if threading.current_thread() is threading.main_thread():
      for number in self._SIGNALS:
        self._former[number] = signal.signal(number, self._request)
    return self

  def __exit__(self, *unused_error) -> None:
    self._give_back()

  def _request(self, number: int, unused_frame) -> None:
    self.requested = True
    self._give_back()
    command.report(
        f'{signal.Signals(number).name}: stopping after this round; a second '
        'signal stops at once'
    )

  def _give_back(self) -> None:
    while self._former:
      number, handler = self._former.popitem()
      signal.signal(number, handler)
