"""`localupdate-figures epochs`: options, and how they reach `epochs`."""

import argparse
import pathlib

from baselines.figures import outputs
from baselines.figures import run_options


def add_options(parser: argparse.ArgumentParser) -> None:
  """Adds the options of this figure."""
  run_options.add_runs_option(parser)
  outputs.add_figure_option(parser)
  outputs.add_table_option(parser)


def draw_from(options: argparse.Namespace) -> list[pathlib.Path]:
  """Draws the figure; returns the files written.

  Raises:
    ValueError: If the runs cannot be read, none is of CEAL, or they are of
      several tasks.
  """
  from baselines.figures import epochs
  from baselines.figures import horizon_runs
  from baselines.figures import tables

  groups = horizon_runs.load_groups(options.runs, epochs.COLUMNS, ['ceal'])
  horizon_runs.check_one_task(groups)
  table = epochs.epoch_table(groups)
  epochs.draw(table, epochs.caption(groups, table), options.output)
  if options.csv is None:
    return [options.output]
  tables.save(table, options.csv)
  return [options.output, options.csv]
