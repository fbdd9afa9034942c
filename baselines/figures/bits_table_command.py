"""`localupdate-figures bits_table`: options, and how they reach the table."""

import argparse
from typing import Any

from baselines.figures import run_options


def add_options(parser: argparse.ArgumentParser) -> None:
  """Adds the options of this table."""
  run_options.add_text_options(parser)


def draw_from(options: argparse.Namespace) -> Any:
  """Writes and prints the table; returns its numbers.

  Raises:
    ValueError: If the runs cannot be read or lack a column.
  """
  from baselines.figures import bits_table
  from baselines.figures import horizon_runs
  from baselines.figures import outcomes
  from baselines.figures import tables

  groups = horizon_runs.load_groups(options.runs, outcomes.COLUMNS)
  table = bits_table.bits_table(groups)
  texts = bits_table.bits_texts(table)
  tables.show(texts, bits_table.notes(groups), options.output)
  return table
