"""`localupdate-figures epochs`: options, and how they reach `epochs`."""

import argparse
from typing import Any

from baselines.figures import run_options


def add_options(parser: argparse.ArgumentParser) -> None:
  """Adds the options of this figure."""
  run_options.add_figure_options(parser)


def draw_from(options: argparse.Namespace) -> Any:
  """Draws the figure; returns the numbers behind it.

  Raises:
    ValueError: If the runs cannot be read, none is of CEAL, or they are of
      several tasks.
  """
  from baselines.figures import epochs
  from baselines.figures import horizon_runs

  groups = horizon_runs.load_groups(options.runs, epochs.COLUMNS, ['ceal'])
  horizon_runs.check_one_task(groups)
  table = epochs.epoch_table(groups)
  epochs.draw(table, epochs.caption(groups, table), options.output)
  return table
