"""`localupdate-figures rate_flags`: options, and how they reach the file."""

import argparse
import math
import pathlib

from baselines import files
from baselines.figures import rate_options
from baselines.figures import run_options
from baselines.figures import values

_ENDING = '.flags'


def add_options(parser: argparse.ArgumentParser) -> None:
  """Adds the options of this file."""
  run_options.add_runs_option(parser)
  parser.add_argument(
      '--output',
      type=_flag_file,
      required=True,
      help=f'the file to write, for --flagfile, ending in {_ENDING}',
  )
  parser.add_argument(
      '--start',
      action='store_true',
      help='only the largest gamma with a run that has finished, which '
      'LocalUpdateDecay is to start from',
  )
  parser.add_argument(
      '--at_most',
      type=values.not_negative,
      help='with start: the largest gamma that may be taken',
  )
  rate_options.add_rule_options(parser)


def draw_from(options: argparse.Namespace) -> None:
  """Writes the file.

  Raises:
    ValueError: If the runs cannot be read, are of several tasks, none has
      finished, or an option would be ignored.
  """
  if options.at_most is not None and not options.start:
    raise ValueError(
        f'at_most would be ignored without start, found {options.at_most:g}.'
    )
  from baselines.figures import horizon_runs
  from baselines.figures import rate_flags

  groups = rate_options.constant_groups(options)
  horizon_runs.check_one_task(groups)
  rule = rate_options.rule_of(options)
  if options.start:
    largest = math.inf if options.at_most is None else options.at_most
    text = rate_flags.start_flags(groups, rule, largest)
  else:
    text = rate_flags.best_flags(groups, rule)
  files.write_whole(options.output, text)


def _flag_file(text: str) -> pathlib.Path:
  if pathlib.Path(text).suffix != _ENDING:
    raise argparse.ArgumentTypeError(f'must end in {_ENDING}, found {text!r}')
  return pathlib.Path(text)
