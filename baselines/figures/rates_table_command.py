"""`localupdate-figures rates_table`: options, and how they reach the table."""

import argparse
from typing import Any

from baselines.figures import rate_options
from baselines.figures import run_options


def add_options(parser: argparse.ArgumentParser) -> None:
  """Adds the options of this table."""
  run_options.add_text_options(parser)
  rate_options.add_rule_options(parser)


def draw_from(options: argparse.Namespace) -> Any:
  """Writes and prints the table; returns its numbers.

  Raises:
    ValueError: If the runs cannot be read or lack a column.
  """
  from baselines.figures import rates_table
  from baselines.figures import tables

  groups = rate_options.constant_groups(options)
  rule = rate_options.rule_of(options)
  table = rates_table.rates_table(groups, rule)
  texts = rates_table.rates_texts(table)
  tables.show(texts, rates_table.notes(groups, rule), options.output)
  return table
