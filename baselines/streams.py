"""Output that cannot be written does not stop the work."""

from collections.abc import Iterator
import contextlib
import os
import sys
from typing import Any


class _PatientStream:
  """A text stream; what cannot be written is dropped.

  Its reader or terminal may have gone, or the disk of a log be full.
  """

  def __init__(self, stream: Any):
    self._stream = stream

  def __getattr__(self, name: str) -> Any:
    return getattr(self._stream, name)

  def write(self, text: str) -> int:
    try:
      return self._stream.write(text)
    except OSError:
      self._drop()
      return len(text)

  def flush(self) -> None:
    try:
      self._stream.flush()
    except OSError:
      self._drop()

  def _drop(self) -> None:
    # What is buffered goes the same way, at the latest when Python ends.
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, self._stream.fileno())
    os.close(null)


def open_missing() -> None:
  """Opens what the process was started without, so that no file gets there."""
  for number in range(3):
    try:
      os.fstat(number)
    except OSError:
      os.open(os.devnull, os.O_RDWR)  # Takes the lowest number that is free.
  for name, number in (('stdout', 1), ('stderr', 2)):
    if getattr(sys, name) is None:
      setattr(sys, name, open(number, 'w', encoding='utf-8', closefd=False))


@contextlib.contextmanager
def patient() -> Iterator[None]:
  """Lets a command go on when `| head` has seen enough of its output."""
  with contextlib.redirect_stdout(_PatientStream(sys.stdout)):
    with contextlib.redirect_stderr(_PatientStream(sys.stderr)):
      yield
