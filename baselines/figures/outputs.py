"""Where files go: options for it, and checks before any work is done."""

import argparse
import os
import pathlib
import sys
from typing import Any, Callable

FIGURE_ENDINGS = ('.png', '.pdf', '.svg')
TABLE_ENDINGS = ('.csv',)
TEXT_ENDINGS = ('.md',)

# The options whose values are files to be written.
_OPTIONS = ('output', 'csv')


def add_figure_option(parser: argparse.ArgumentParser) -> None:
  """Adds `--output`, the file of the figure."""
  parser.add_argument(
      '--output',
      type=_path_type(FIGURE_ENDINGS),
      required=True,
      help='the file to write; its ending says the format: png, pdf, svg',
  )


def add_table_option(parser: argparse.ArgumentParser) -> None:
  """Adds `--csv`, a file for the numbers behind a figure."""
  parser.add_argument(
      '--csv',
      type=_path_type(TABLE_ENDINGS),
      help='a file for the numbers of the figure or table, ending in .csv',
  )


def add_text_option(parser: argparse.ArgumentParser) -> None:
  """Adds `--output`, the file of a table to be read, in Markdown."""
  parser.add_argument(
      '--output',
      type=_path_type(TEXT_ENDINGS),
      required=True,
      help='the file to write, in Markdown, ending in .md',
  )


def check_outputs(options: argparse.Namespace) -> None:
  """Raises ValueError if a file could not be written where it should go.

  Makes nothing: a command that fails later leaves no empty folders behind.

  Args:
    options: Parsed options; those that name files are looked at.
  """
  for option in _OPTIONS:
    path = getattr(options, option, None)
    if path is not None:
      _check_output(option, path)


def save_numbers(
    options: argparse.Namespace, numbers: Any
) -> list[pathlib.Path]:
  """Writes the numbers behind a figure where they are asked for.

  Args:
    options: Parsed options, with `output`.
    numbers: A table, or None if the figure has none to give.

  Returns:
    The files that have been written, the figure among them.
  """
  if getattr(options, 'csv', None) is None:
    return [options.output]
  from baselines.figures import tables

  tables.save(numbers, options.csv)
  return [options.output, options.csv]


def say_nothing_drawn(path: pathlib.Path) -> None:
  """Says on the terminal that a figure has no lines.

  On standard error: what is printed otherwise are tables and names of files.

  Args:
    path: The figure.
  """
  print(
      f'localupdate-figures: {path} has no lines: each setting has a run that '
      'has diverged, or no values; the caption counts the runs.',
      file=sys.stderr,
  )


def _check_output(option: str, path: pathlib.Path) -> None:
  if path.is_dir():
    raise ValueError(f'{option} must be a file, found the folder {path}.')
  # The nearest folder that exists, in which the missing ones will be made.
  folder = next(p for p in path.absolute().parents if p.exists())
  if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
    raise ValueError(
        f'{option} must be in a folder that can be written to; {folder} is not '
        f'one, found {path}.'
    )


def _path_type(endings: tuple[str, ...]) -> Callable[[str], pathlib.Path]:
  def path(text: str) -> pathlib.Path:
    if pathlib.Path(text).suffix.lower() not in endings:
      raise argparse.ArgumentTypeError(
          f'must end in one of {", ".join(endings)}, found {text!r}'
      )
    try:
      return pathlib.Path(text).expanduser()
    except RuntimeError as error:  # No such user.
      raise argparse.ArgumentTypeError(f'{error} Found {text!r}') from error

  return path
