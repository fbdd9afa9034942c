"""`localupdate-figures loss`: options, and how they reach `loss`."""

import argparse
import pathlib

from baselines.figures import outputs
from baselines.figures import symbols


def add_options(parser: argparse.ArgumentParser) -> None:
  """Adds the options of this figure."""
  parser.add_argument(
      '--runs',
      type=pathlib.Path,
      required=True,
      help='a run folder, or a folder of run folders such as a sweep',
  )
  outputs.add_figure_option(parser)
  parser.add_argument(
      '--quantity',
      choices=tuple(symbols.QUANTITIES),
      default='population_loss',
      help='the column to draw (default: %(default)s)',
  )
  parser.add_argument(
      '--log_scale', action='store_true', help='logarithmic vertical axis'
  )


def draw_from(options: argparse.Namespace) -> list[pathlib.Path]:
  """Draws the figure; returns the files written.

  Raises:
    ValueError: If the runs cannot be read or lack the quantity.
  """
  from baselines.figures import load
  from baselines.figures import loss

  loss.draw(
      load.load_runs(options.runs),
      options.output,
      quantity=options.quantity,
      log_scale=options.log_scale,
  )
  return [options.output]
