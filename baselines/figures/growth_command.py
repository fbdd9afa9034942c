"""`localupdate-figures growth`: options, and how they reach `growth`."""

import argparse
import pathlib

from baselines.figures import outputs
from baselines.figures import run_options


def add_options(parser: argparse.ArgumentParser) -> None:
  """Adds the options of this figure."""
  run_options.add_runs_option(parser)
  outputs.add_figure_option(parser)
  outputs.add_table_option(parser)
  parser.add_argument(
      '--log_scale', action='store_true', help='logarithmic axis of the regret'
  )


def draw_from(options: argparse.Namespace) -> list[pathlib.Path]:
  """Draws the figure; returns the files written.

  Raises:
    ValueError: If the runs cannot be read, do not differ in the horizon, or
      are of several tasks.
  """
  from baselines.figures import growth
  from baselines.figures import horizon_runs
  from baselines.figures import tables

  groups = horizon_runs.load_groups(options.runs, growth.COLUMNS)
  horizon_runs.check_one_task(groups)
  table = growth.growth_table(groups)
  growth.draw(
      table, growth.caption(groups), options.output, log_scale=options.log_scale
  )
  if options.csv is None:
    return [options.output]
  tables.save(table, options.csv)
  return [options.output, options.csv]
