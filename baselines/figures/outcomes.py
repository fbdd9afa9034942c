"""What runs have come to: regret, bits and rounds, a row per group."""

from collections.abc import Sequence
from typing import Any, Optional

import numpy as np
import pandas as pd

from baselines.figures import horizon_runs
from baselines.figures import load
from baselines.figures import symbols
from baselines.figures import tables

BITS = ('cumulative_uplink_bits', 'cumulative_downlink_bits')
COLUMNS = ('cumulative_regret', *BITS, 'sent')
# Algorithms that others are compared to, and the links that are compared.
_RATIOS = (
    ('uplink', 'fed_paq'), ('uplink', 'fed_avg'), ('downlink', 'fed_avg'),
)
# The code of messages that are not compressed: the numbers as they are.
NO_CODE = 'floats'
# FedPAQ's own code, which is meant where there are several.
_REFERENCE_CODE = 'fixed_width'

NOTES = (
    'Means over runs, in parentheses the standard deviation (n - 1). Uplink: '
    'bits that a client sent, mean over the clients; downlink: bits broadcast, '
    'each broadcast counted once; both until the horizon, under the code that '
    'is named. Rounds: those in which anything was sent.',
    'Ratios are of means, to the runs of FedPAQ and FedAvg that agree in the '
    'task, the settings of the run and the horizon; where FedPAQ has several '
    'codes, to the one with fixed_width. A dash: no such runs have finished, '
    'or those of several settings.',
)


def outcome_table(groups: Sequence[horizon_runs.RunGroup]) -> pd.DataFrame:
  """Returns one row per group, in their order.

  Args:
    groups: The groups; numbers of one without a finished run are NaN.

  Returns:
    The columns `code`, `runs` (those that have finished), `diverged`,
    `unfinished`, `regret_mean`, `regret_sd`, the same for `uplink`, `downlink`
    and `rounds`, and `uplink_percent_of_fed_paq`, `uplink_percent_of_fed_avg`,
    `downlink_percent_of_fed_avg`, as `NOTES` says.
  """
  rows = [_row(group) for group in groups]
  for row, group in zip(rows, groups):
    for link, algorithm in _RATIOS:
      other = _reference(groups, group, algorithm)
      base = np.nan if other is None else rows[other][f'{link}_mean']
      share = row[f'{link}_mean'] / base if base else np.nan
      row[f'{link}_percent_of_{algorithm}'] = 100 * share
  return pd.DataFrame(rows)


def outcome_texts(table: pd.DataFrame) -> pd.DataFrame:
  """Returns the columns of `outcome_table` as texts to be read."""
  shown = pd.DataFrame(index=table.index)
  shown['runs'] = table.runs.astype(str)
  for word in ('diverged', 'unfinished'):
    if table[word].any():
      shown[word] = table[word].astype(str)
  for name in ('regret', 'uplink', 'downlink'):
    shown[name] = list(
        map(tables.mean_text, table[f'{name}_mean'], table[f'{name}_sd'])
    )
  shown['rounds'] = [tables.number_text(r, 100.0) for r in table.rounds_mean]
  for link, algorithm in _RATIOS:
    name = symbols.ALGORITHMS[algorithm]
    column = table[f'{link}_percent_of_{algorithm}']
    shown[f'{link} / {name}'] = list(map(tables.percent_text, column))
  return shown


def code_of(group: horizon_runs.RunGroup) -> str:
  """Returns the code that bits are counted under."""
  return group.settings.get('code', NO_CODE)


def mean_and_deviation(values: Sequence[float]) -> tuple[float, float]:
  """Returns the mean and the standard deviation of a sample (n - 1).

  Nothing has no mean, and one value no deviation: those are NaN.
  """
  mean = float(np.mean(values)) if len(values) else np.nan
  spread = float(np.std(values, ddof=1)) if len(values) > 1 else np.nan
  return mean, spread


def last_value(run: load.Run, column: str) -> float:
  """Returns a number at the end of a run; before any round it is 0."""
  values = run.metrics[column].fillna(0.0)
  return float(values.iloc[-1])


def _row(group: horizon_runs.RunGroup) -> dict[str, Any]:
  row: dict[str, Any] = {
      'code': code_of(group),
      'runs': len(group.runs),
      'diverged': group.num_diverged,
      'unfinished': group.num_unfinished,
  }
  found = {
      'regret': [last_value(r, 'cumulative_regret') for r in group.runs],
      'uplink': [last_value(r, 'cumulative_uplink_bits') for r in group.runs],
      'downlink': [
          last_value(r, 'cumulative_downlink_bits') for r in group.runs
      ],
      'rounds': [float(r.metrics['sent'].sum()) for r in group.runs],
  }
  for name, values in found.items():
    row[f'{name}_mean'], row[f'{name}_sd'] = mean_and_deviation(values)
  return row


def _reference(
    groups: Sequence[horizon_runs.RunGroup],
    group: horizon_runs.RunGroup,
    algorithm: str,
) -> Optional[int]:
  """Returns which group a group is compared to; None unless it is just one."""
  found = [
      i
      for i, other in enumerate(groups)
      if other.algorithm == algorithm
      and other.experiment == group.experiment
      and other.runs
  ]
  if len(found) > 1:
    found = [i for i in found if code_of(groups[i]) == _REFERENCE_CODE]
  return found[0] if len(found) == 1 else None
