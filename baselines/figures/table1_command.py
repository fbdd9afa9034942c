"""`localupdate-figures table1`: options, and how they reach the table."""

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
    FileNotFoundError: If data that a run used are no longer there.
    ValueError: If the runs or the data cannot be read.
  """
  from baselines.figures import load
  from baselines.figures import table1
  from baselines.figures import tables

  runs = [run for folder in options.runs for run in load.load_runs(folder)]
  table = table1.count_table(runs)
  texts = table1.count_texts(table)
  print(tables.table_text(texts))
  tables.save_markdown(texts, table1.NOTES, options.output)
  if options.csv is None:
    return [options.output]
  tables.save(table, options.csv)
  return [options.output, options.csv]
