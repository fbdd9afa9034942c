"""`localupdate-figures codes_table`: options, and how they reach the table."""

import argparse
import pathlib

from baselines.figures import outputs
from baselines.figures import run_options


def add_options(parser: argparse.ArgumentParser) -> None:
  """Adds the options of this table."""
  run_options.add_runs_option(parser)
  outputs.add_text_option(parser)
  outputs.add_table_option(parser)


def draw_from(options: argparse.Namespace) -> list[pathlib.Path]:
  """Writes and prints the table; returns the files written.

  Raises:
    ValueError: If the runs cannot be read or lack a column.
  """
  from baselines.figures import codes_table
  from baselines.figures import horizon_runs
  from baselines.figures import outcomes
  from baselines.figures import tables

  groups = horizon_runs.load_groups(options.runs, outcomes.BITS)
  table = codes_table.codes_table(groups)
  texts = codes_table.codes_texts(table)
  print(tables.table_text(texts))
  tables.save_markdown(texts, codes_table.notes(groups), options.output)
  if options.csv is None:
    return [options.output]
  tables.save(table, options.csv)
  return [options.output, options.csv]
