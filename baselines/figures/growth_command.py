"""`localupdate-figures growth`: options, and how they reach `growth`."""

import argparse
from typing import Any

from baselines.figures import run_options


def add_options(parser: argparse.ArgumentParser) -> None:
  """Adds the options of this figure."""
  run_options.add_figure_options(parser)
  parser.add_argument(
      '--log_scale', action='store_true', help='logarithmic axis of the regret'
  )


def draw_from(options: argparse.Namespace) -> Any:
  """Draws the figure; returns the numbers behind it.

  Raises:
    ValueError: If the runs cannot be read, do not differ in the horizon, or
      are of several tasks.
  """
  from baselines.figures import growth
  from baselines.figures import horizon_runs

  groups = horizon_runs.load_groups(options.runs, growth.COLUMNS)
  horizon_runs.check_one_task(groups)
  table = growth.growth_table(groups)
  growth.draw(
      table, growth.caption(groups), options.output, log_scale=options.log_scale
  )
  return table
