"""`localupdate-figures rates_table`: options, and how they reach the table."""

import argparse
import pathlib

from baselines.figures import outputs
from baselines.figures import rate_options
from baselines.figures import run_options


def add_options(parser: argparse.ArgumentParser) -> None:
  """Adds the options of this table."""
  run_options.add_runs_option(parser)
  outputs.add_text_option(parser)
  outputs.add_table_option(parser)
  rate_options.add_rule_options(parser)


def draw_from(options: argparse.Namespace) -> list[pathlib.Path]:
  """Writes and prints the table; returns the files written.

  Raises:
    ValueError: If the runs cannot be read or lack a column.
  """
  from baselines.figures import rates_table
  from baselines.figures import tables

  groups = rate_options.constant_groups(options)
  rule = rate_options.rule_of(options)
  table = rates_table.rates_table(groups, rule)
  texts = rates_table.rates_texts(table)
  print(tables.table_text(texts))
  tables.save_markdown(texts, rates_table.notes(groups, rule), options.output)
  if options.csv is None:
    return [options.output]
  tables.save(table, options.csv)
  return [options.output, options.csv]
