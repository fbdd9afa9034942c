"""Bits under each code: a row per algorithm and link, a column per code."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from baselines.figures import horizon_runs
from baselines.figures import outcomes
from baselines.figures import tables

# Groups of one row: all that differ in nothing but the code.
_COLUMN = 'code'
# The order of the columns.
_CODES = (
    outcomes.NO_CODE, 'fixed_width', 'signed_unary', 'elias_gamma', 'run_length'
)


def codes_table(groups: Sequence[horizon_runs.RunGroup]) -> pd.DataFrame:
  """Returns one row per algorithm, link and code.

  Args:
    groups: The groups, of any tasks; best from a sweep over `code`.

  Returns:
    The columns `task`, `algorithm` (with what else tells groups apart, but for
    the code), `link` (uplink or downlink), `code`, `runs`, `bits_mean` and
    `bits_sd` (n - 1): the bits until the horizon of a client, mean over the
    clients, or of the broadcasts, mean over the runs.
  """
  names = horizon_runs.name_groups(groups, ignored=[_COLUMN])
  rows: list[dict[str, Any]] = []
  for task in dict.fromkeys(group.task for group in groups):
    for link, column in zip(('uplink', 'downlink'), outcomes.BITS):
      rows += [
          {
              'task': task, 'algorithm': name, 'link': link,
              **_row(group, column),
          }
          for group, name in zip(groups, names)
          if group.task == task
      ]
  return pd.DataFrame(rows)


def codes_texts(table: pd.DataFrame) -> pd.DataFrame:
  """Returns what `codes_table` returns as texts, with a column per code."""
  keys = ['task', 'algorithm', 'link']
  lines: dict[tuple[str, ...], dict[str, str]] = {}
  for row in table.itertuples():
    line = lines.setdefault((row.task, row.algorithm, row.link), {})
    line[row.code] = tables.mean_text(row.bits_mean, row.bits_sd)
  found = table[_COLUMN].unique()
  # Codes that are not known come last, in the order of the table.
  codes = [code for code in _CODES if code in found]
  codes += [code for code in found if code not in codes]
  return pd.DataFrame(
      [
          [*key, *(line.get(code, '-') for code in codes)]
          for key, line in lines.items()
      ],
      columns=[*keys, *codes],
  )


def notes(groups: Sequence[horizon_runs.RunGroup]) -> list[str]:
  """Says what the table shows, and of which runs."""
  return [
      *horizon_runs.describe_tasks(groups),
      'Bits until the horizon: means over runs, in parentheses the standard '
      'deviation (n - 1). Uplink: bits that a client sent, mean over the '
      'clients; downlink: bits broadcast, each broadcast counted once; '
      'all but CEAL broadcast the numbers as they are, whatever the code. '
      f'{outcomes.NO_CODE}: the numbers as they are, without a code. A dash: '
      'no such run has finished.',
  ]


def _row(group: horizon_runs.RunGroup, column: str) -> dict[str, Any]:
  bits = [outcomes.last_value(run, column) for run in group.runs]
  mean, spread = outcomes.mean_and_deviation(bits)
  return {
      _COLUMN: outcomes.code_of(group), 'runs': len(group.runs),
      'bits_mean': mean, 'bits_sd': spread,
  }
