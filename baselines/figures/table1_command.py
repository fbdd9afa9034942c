"""`localupdate-figures table1`: options, and how they reach the table."""

import argparse
from typing import Any

from baselines.figures import run_options


def add_options(parser: argparse.ArgumentParser) -> None:
  """Adds the options of this table."""
  run_options.add_text_options(parser)
  parser.add_argument(
      '--data_dir',
      help="the folder that holds TFF's databases, whose clients and examples "
      "are counted (default: each run's own data_dir, in the working directory "
      'if it is relative)',
  )


def draw_from(options: argparse.Namespace) -> Any:
  """Writes and prints the table; returns its numbers.

  Raises:
    FileNotFoundError: If data that a run used are no longer there.
    ValueError: If the runs or the data cannot be read, or no run used a
      database and one is asked for.
  """
  from baselines.figures import load
  from baselines.figures import table1
  from baselines.figures import tables

  runs = load.load_all(options.runs)
  table = table1.count_table(runs, options.data_dir)
  texts = table1.count_texts(table)
  tables.show(texts, table1.NOTES, options.output)
  return table
