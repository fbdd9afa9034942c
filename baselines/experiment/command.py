"""What all commands share: exit codes, and errors as one line."""

import pathlib
import sys
from typing import Callable

from baselines import streams

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

  Args:
    name: The command's name, for messages.
    main: Called with the command's arguments, returns its exit code.

  Returns:
    The exit code of `main`, whether somebody reads its output or not;
    `FINISHED` after the help; `BAD_INPUT` after an `InputError`; `STOPPED`
    after a SIGINT that no run took.
  """
  streams.open_missing()
  # Line by line even into a pipe, so that a log can be followed; what a
  # terminal has no letter for is no reason to stop.
  sys.stdout.reconfigure(line_buffering=True, errors='backslashreplace')
  with streams.patient():
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
  """Returns a path, the home folder in the place of `~`.

  Args:
    name: The setting that holds it.
    text: The path.

  Raises:
    InputError: If there is no such home folder.
  """
  try:
    return pathlib.Path(text).expanduser()
  except RuntimeError as error:
    raise InputError(
        f'{name} must be a path: {one_line(error)} Found {text!r}.'
    ) from error


def report(text: str) -> None:
  """Prints a line about what goes on; results go to standard output."""
  print(text, file=sys.stderr, flush=True)


def one_line(error: BaseException) -> str:
  """Returns the message of `error` on one line; its type if it has none."""
  return ' '.join(str(error).split()) or type(error).__name__
