"""What ends a run before its last round: divergence, or a signal."""

from collections.abc import Iterator, Sequence
import contextlib
import math
import os
import select
import signal
import threading
import time
from typing import Optional

from baselines import command
from baselines.results import records

_SECONDS_TO_END = 1.0
_SECONDS_OF_ONE_REQUEST = 1.0
_LOSSES = ('loss_before_training', 'population_loss')


class DivergenceMonitor:
  """Tells when a run has diverged.

  It has if a loss, the norm of the update or a regret is not finite, or a loss
  is more than `factor` times its own first value, or times 1 where that is not
  positive, as at a minimum. It depends on the rows of metrics.csv alone, so a
  continued run, which shows it the rows kept, decides as if it had never
  stopped.
  """

  def __init__(self, factor: float):
    """Makes a monitor; a factor of 0 is no limit but infinity."""
    self._factor = factor
    self._first: dict[str, float] = {}

  def observe(self, row: records.Row) -> Optional[str]:
    """Looks at the next row; returns what diverged, as a sentence, or None."""
    for column in (*_LOSSES, 'update_norm', 'cumulative_regret', 'last_regret'):
      value = records.number(row, column)
      if value is not None and not math.isfinite(value):
        return f'{column} is {value}'
    for column in _LOSSES:
      value = records.number(row, column)
      if value is None:
        continue
      first = self._first.setdefault(column, value)
      scale = first if first > 0.0 else 1.0
      if self._factor and value > self._factor * scale:
        than = f'its first value {first:g}' if first > 0.0 else '1'
        return f'{column} is {value:g}, more than {self._factor:g} times {than}'
    return None


class Interruption:
  """Turns SIGINT and SIGTERM into a request to stop after the round.

  A context manager. The first signal sets `requested`. What comes within a
  second is the same request: whoever stops a group of processes may reach one
  of them twice. A later one ends the process: as its former handler does, or,
  where Python cannot run that within a second since a round is at work, with
  the code 128 + the signal's number.
  """

  _SIGNALS = (signal.SIGINT, signal.SIGTERM)

  def __init__(self, *, may_exit: bool = True):
    """Makes one.

    Without `may_exit`, for a notebook, which holds more than a run, a later
    signal does not end the process where Python cannot run the former handler.
    """
    self._may_exit = may_exit
    self.requested = False
    self._asked = 0.0
    self._former = {}
    self._stack = contextlib.ExitStack()

  def __enter__(self) -> 'Interruption':
    # Python lets only the main thread set handlers.
    if threading.current_thread() is threading.main_thread():
      self._stack.enter_context(
          _watching(self._SIGNALS, self._may_exit)
      )
      for number in self._SIGNALS:
        self._former[number] = signal.signal(number, self._request)
    return self

  def __exit__(self, *unused_error) -> None:
    self._give_back()
    self._stack.close()

  def _request(self, number: int, unused_frame) -> None:
    if not self.requested:
      self.requested, self._asked = True, time.monotonic()
    elif time.monotonic() - self._asked >= _SECONDS_OF_ONE_REQUEST:
      self._give_back()
      os.kill(os.getpid(), number)

  def _give_back(self) -> None:
    while self._former:
      number, handler = self._former.popitem()
      signal.signal(number, handler)


@contextlib.contextmanager
def _watching(numbers: Sequence[int], may_exit: bool) -> Iterator[None]:
  """Looks after signals in a thread: handlers wait for the round at work."""
  reader, writer = os.pipe()
  os.set_blocking(writer, False)
  former = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
  thread = threading.Thread(
      target=_watch, args=(reader, numbers, may_exit), daemon=True
  )
  thread.start()
  try:
    yield
  finally:
    signal.set_wakeup_fd(former)
    os.close(writer)  # Ends the thread.
    thread.join()
    os.close(reader)


def _watch(reader: int, numbers: Sequence[int], may_exit: bool) -> None:
  asked = None
  while received := os.read(reader, 1):
    number = received[0]
    if number not in numbers:
      continue
    now = time.monotonic()
    if asked is not None and now - asked >= _SECONDS_OF_ONE_REQUEST:
      # Time for the former handler, if Python gets to run it.
      if may_exit and not select.select([reader], [], [], _SECONDS_TO_END)[0]:
        os._exit(128 + number)  # pylint: disable=protected-access
    elif asked is None:
      asked = now
      command.report(
          f'{signal.Signals(number).name}: stopping after this round; a second '
          'signal stops at once'
      )
