"""Tables: on the screen and as CSV files."""

import pathlib

import pandas as pd


def table_text(table: pd.DataFrame) -> str:
  """Returns the table in columns, numbers to six digits, nothing as a dash."""
  return table.to_string(
      index=False, na_rep='-', float_format=lambda value: f'{value:.6g}'
  )


def save(table: pd.DataFrame, path: pathlib.Path) -> None:
  """Writes a table as CSV, numbers to all their digits.

  Args:
    table: The table; its index is left out.
    path: Where to; folders that are missing are made.
  """
  path.parent.mkdir(parents=True, exist_ok=True)
  partial = path.with_name(f'.partial.{path.name}')
  table.to_csv(partial, index=False, lineterminator='\n')
  partial.replace(path)
