"""Output that nobody reads any more does not stop the work."""

from collections.abc import Iterator
import contextlib
import os
import sys
from typing import Any


class _PatientStream:
  """A text stream; once its reader has gone, what is written is dropped."""

  def __init__(self, stream: Any):
    self._stream = stream

  def __getattr__(self, name: str) -> Any:
    return getattr(self._stream, name)

  def write(self, text: str) -> int:
    try:
      return self._stream.write(text)
    except BrokenPipeError:
      self._drop()
      return len(text)

  def flush(self) -> None:
    try:
      self._stream.flush()
    except BrokenPipeError:
      self._drop()

  def _drop(self) -> None:
    # What is buffered goes the same way, at the latest when Python ends.
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, self._stream.fileno())
    os.close(null)


@contextlib.contextmanager
def patient() -> Iterator[None]:
  """Lets a command go on when `| head` has seen enough of its output."""
  with contextlib.redirect_stdout(_PatientStream(sys.stdout)):
    with contextlib.redirect_stderr(_PatientStream(sys.stderr)):
      yield
