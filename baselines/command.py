"""What all commands share: exit codes, errors as one line, what is reported.

Output that cannot be written does not stop the work. TensorFlow Federated is
imported late, and announced.
"""

from collections.abc import Iterator
import contextlib
import gc
import os
import pathlib
import sys
import time
from typing import Any, Callable


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


FINISHED = 0
FAILED = 1
BAD_INPUT = 2
DIVERGED = 3
INTERRUPTED = 75  # EX_TEMPFAIL: the same command again goes on from there.
STOPPED = 130  # What a shell reports after SIGINT.


class InputError(Exception):
  """The command was given something that it cannot work with."""


class HelpRequested(Exception):
  """Carries the text that `--help` asks for."""


def run_command(name: str, main: Callable[[list[str]], int]) -> int:
  """Runs a command; bad input is reported in one line without a traceback.

  `main` is called with the arguments.

  Returns:
    The exit code of `main`, whether somebody reads its output or not;
    `FINISHED` after the help; `BAD_INPUT` after an `InputError`; `STOPPED`
    after a SIGINT that no run took.
  """
  open_missing()
  # Line by line even into a pipe, so that a log can be followed; what a
  # terminal has no letter for is no reason to stop.
  sys.stdout.reconfigure(line_buffering=True, errors='backslashreplace')
  with patient():
    try:
      return main(sys.argv[1:])
    except HelpRequested as help_requested:
      print(help_requested)
      return FINISHED
    except InputError as error:
      report(f'{name}: error: {one_line(error)}')
      return BAD_INPUT
    except KeyboardInterrupt:
      report(f'{name}: stopped at once')
      return STOPPED


def user_path(name: str, text: str) -> pathlib.Path:
  """Returns the path of a setting, with the home folder for `~`.

  Raises `InputError`, with the setting's name, if there is no such folder.
  """
  try:
    return pathlib.Path(text).expanduser()
  except RuntimeError as error:
    raise InputError(
        f'{name} must be a path: {one_line(error)} Found {text!r}.'
    ) from error


_silences = 0


@contextlib.contextmanager
def silence() -> Iterator[None]:
  """Lets nothing be reported meanwhile, and no bar be shown."""
  global _silences
  _silences += 1
  try:
    yield
  finally:
    _silences -= 1


def is_silent() -> bool:
  """Whether nothing is to be reported."""
  return _silences > 0


def report(text: str) -> None:
  """Prints a line about what goes on; results go to standard output."""
  if not is_silent():
    print(text, file=sys.stderr, flush=True)


def one_line(error: BaseException) -> str:
  """Returns the message of `error` on one line; its type if it has none."""
  return ' '.join(str(error).split()) or type(error).__name__


@contextlib.contextmanager
def announced() -> Iterator[None]:
  """Surrounds an import that needs TensorFlow Federated.

  It takes 3 to 30 seconds, which without a word looks like a hang. Says nothing
  where it is there already.
  """
  if 'tensorflow_federated' in sys.modules:
    yield
    return
  # TensorFlow 2.14 prints harmless errors at every start, such as cuDNN being
  # registered twice. What matters is raised in Python; set the variable
  # to 0 to see all messages.
  os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
  report('loading TensorFlow Federated ...')
  started = time.monotonic()
  with _without_collections():
    yield
  report(f'loaded in {time.monotonic() - started:.0f} s')


@contextlib.contextmanager
def _without_collections() -> Iterator[None]:
  """Surrounds the import, which makes a million objects, nearly all to stay.

  Looking through them for garbage time and again takes a quarter of its time,
  and later collections would look through them too.
  """
  if not gc.isenabled():
    yield
    return
  gc.disable()
  try:
    yield
    gc.freeze()
  finally:
    gc.enable()
