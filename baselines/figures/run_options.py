"""Options that several kinds of figures have."""

import argparse
import pathlib

from baselines.figures import outputs
from baselines.figures import symbols


def add_figure_options(parser: argparse.ArgumentParser) -> None:
  """Adds `--runs`, `--output` for a picture, and `--csv`."""
  add_runs_option(parser)
  outputs.add_figure_option(parser)
  outputs.add_table_option(parser)


def add_text_options(parser: argparse.ArgumentParser) -> None:
  """Adds `--runs`, `--output` for a table in Markdown, and `--csv`."""
  add_runs_option(parser)
  outputs.add_text_option(parser)
  outputs.add_table_option(parser)


def add_runs_option(parser: argparse.ArgumentParser) -> None:
  """Adds `--runs`, which may be given more than once."""
  parser.add_argument(
      '--runs',
      type=pathlib.Path,
      action='append',
      required=True,
      help='a run folder, or a folder of run folders such as a sweep; may be '
      'given more than once',
  )


def add_quantity_option(parser: argparse.ArgumentParser) -> None:
  """Adds `--quantity`, a column of metrics.csv."""
  parser.add_argument(
      '--quantity',
      choices=tuple(symbols.QUANTITIES),
      default='population_loss',
      help='the column to draw (default: %(default)s)',
  )


def add_log_scale_option(parser: argparse.ArgumentParser) -> None:
  """Adds `--log_scale`."""
  parser.add_argument(
      '--log_scale', action='store_true', help='logarithmic vertical axis'
  )
