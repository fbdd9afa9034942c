"""Regret and bits of each task and algorithm (paper 2, Table I)."""

from collections.abc import Sequence

import pandas as pd

from baselines.figures import horizon_runs
from baselines.figures import outcomes


def bits_table(groups: Sequence[horizon_runs.RunGroup]) -> pd.DataFrame:
  """Returns one row per group: `task`, `algorithm` and its outcome.

  Args:
    groups: The groups, of any tasks.

  Returns:
    `task`, `algorithm` (with what else tells groups apart, but for the code)
    and the columns of `outcomes.outcome_table`.
  """
  table = outcomes.outcome_table(groups)
  names = horizon_runs.name_groups(groups, ignored=['code'])
  table.insert(0, 'task', [group.task for group in groups])
  table.insert(1, 'algorithm', names)
  return table


def bits_texts(table: pd.DataFrame) -> pd.DataFrame:
  """Returns what `bits_table` returns as texts to be read."""
  texts = outcomes.outcome_texts(table)
  for place, name in enumerate(('task', 'algorithm', 'code')):
    texts.insert(place, name, table[name])
  return texts


def notes(groups: Sequence[horizon_runs.RunGroup]) -> list[str]:
  """Says what the table shows, and of which runs."""
  return [*horizon_runs.describe_tasks(groups), *outcomes.NOTES]
