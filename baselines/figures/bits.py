"""Tables of paper 2: regret and bits, their ratios, codes, changed settings.

All take groups as `results.groups.group_by_algorithm` finds them, and show
means over the runs that have finished.
"""

import argparse
from collections.abc import Sequence
from typing import Any, Optional

import numpy as np
import pandas as pd

from baselines.figures import tables
from baselines.results import captions
from baselines.results import groups as groups_lib
from baselines.results import runs as runs_lib
from baselines.results import symbols

Group = groups_lib.Group
_LINKS = ('cumulative_uplink_bits', 'cumulative_downlink_bits')
COLUMNS = ('cumulative_regret', *_LINKS, 'sent')
_CEAL = 'ceal'
_BASE = 'base'
# Algorithms that others are compared to, and the links that are compared.
_RATIOS = (
    ('uplink', 'fed_paq'), ('uplink', 'fed_avg'), ('downlink', 'fed_avg'),
)
# The code of messages that are not compressed: the numbers as they are.
NO_CODE = 'floats'
# FedPAQ's own code, which is meant where there are several.
_REFERENCE_CODE = 'fixed_width'
# The order of the columns of `codes_table`.
_CODES = (NO_CODE, 'fixed_width', 'signed_unary', 'elias_gamma', 'run_length')

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


# ---- Regret, bits and their ratios (Table I).


def bits(runs: pd.DataFrame, options: argparse.Namespace) -> tables.Drawn:
  """Regret and bits of each task and algorithm (Table I)."""
  del options  # It has none of its own.
  groups = groups_lib.group_by_algorithm(runs, COLUMNS)
  table = bits_table(groups)
  texts = outcome_texts(table, ('task', 'algorithm', 'code'))
  return tables.Drawn(table, texts=texts, notes=bits_notes(groups))


def bits_table(groups: Sequence[Group]) -> pd.DataFrame:
  """Returns one row per group.

  The columns are `task`, `algorithm` (with what else tells groups apart, but
  for the code) and those of `outcome_table`.
  """
  table = outcome_table(groups)
  names = captions.name_algorithms(groups, ignored=['code'])
  table.insert(0, 'task', [group.task for group in groups])
  table.insert(1, 'algorithm', names)
  return table


def bits_notes(groups: Sequence[Group]) -> list[str]:
  """Says what the table shows, and of which runs."""
  return [*captions.describe_tasks(groups), *NOTES]


def outcome_table(groups: Sequence[Group]) -> pd.DataFrame:
  """Returns one row per group, in order; NaN where no run has finished.

  The columns are `code`, `runs` (those that have finished), `diverged`,
  `unfinished`, `regret_mean`, `regret_sd`, the same for `uplink`, `downlink`
  and `rounds`, and `uplink_percent_of_fed_paq`, `uplink_percent_of_fed_avg`,
  `downlink_percent_of_fed_avg`, as `NOTES` says.
  """
  rows = [_outcome(group) for group in groups]
  for row, group in zip(rows, groups):
    for link, algorithm in _RATIOS:
      other = _reference(groups, group, algorithm)
      base = np.nan if other is None else rows[other][f'{link}_mean']
      share = row[f'{link}_mean'] / base if base else np.nan
      row[f'{link}_percent_of_{algorithm}'] = 100 * share
  return pd.DataFrame(rows)


def outcome_texts(
    table: pd.DataFrame, first: Sequence[str] = ()
) -> pd.DataFrame:
  """Returns columns of `outcome_table` as texts, behind some others."""
  shown = table[list(first)].copy()
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
    name = symbols.algorithm_text(algorithm)
    column = table[f'{link}_percent_of_{algorithm}']
    shown[f'{link} / {name}'] = list(map(tables.percent_text, column))
  return shown


def code_of(group: Group) -> str:
  """Returns the code that bits are counted under."""
  return group.settings.get('code', NO_CODE)


def mean_and_deviation(values: Sequence[float]) -> tuple[float, float]:
  """Returns mean and deviation of a sample (n - 1); NaN of too few values."""
  mean = float(np.mean(values)) if len(values) else np.nan
  spread = float(np.std(values, ddof=1)) if len(values) > 1 else np.nan
  return mean, spread


def _outcome(group: Group) -> dict[str, Any]:
  row: dict[str, Any] = {
      'code': code_of(group),
      'runs': len(group.runs),
      'diverged': group.num_diverged,
      'unfinished': group.num_unfinished,
  }
  found = {
      name: [_last_value(run, column) for run in group.runs]
      for name, column in zip(('regret', 'uplink', 'downlink'), COLUMNS)
  }
  found['rounds'] = [float(run.metrics['sent'].sum()) for run in group.runs]
  for name, values in found.items():
    row[f'{name}_mean'], row[f'{name}_sd'] = mean_and_deviation(values)
  return row


def _last_value(run: runs_lib.Run, column: str) -> float:
  """Returns a number at the end of a run; before any round it is 0."""
  return float(run.metrics[column].fillna(0.0).iloc[-1])


def _reference(
    groups: Sequence[Group], group: Group, algorithm: str
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


# ---- Bits under each code.


def codes(runs: pd.DataFrame, options: argparse.Namespace) -> tables.Drawn:
  """Bits under each code: a row per algorithm and link, a column per code."""
  del options  # It has none of its own.
  groups = groups_lib.group_by_algorithm(runs, _LINKS)
  table = codes_table(groups)
  return tables.Drawn(
      table, texts=codes_texts(table), notes=codes_notes(groups)
  )


def codes_notes(groups: Sequence[Group]) -> list[str]:
  """Says what the table shows, and of which runs."""
  return [
      *captions.describe_tasks(groups),
      'Bits until the horizon: means over runs, in parentheses the standard '
      'deviation (n - 1). Uplink: bits that a client sent, mean over the '
      'clients; downlink: bits broadcast, each broadcast counted once; '
      'all but CEAL broadcast the numbers as they are, whatever the code. '
      f'{NO_CODE}: the numbers as they are, without a code. A dash: '
      'no such run has finished.',
  ]


def codes_table(groups: Sequence[Group]) -> pd.DataFrame:
  """Returns one row per algorithm, link and code, best of a sweep over `code`.

  The columns are `task`, `algorithm` (as in `bits_table`), `link` (uplink or
  downlink), `code`, `runs`, `bits_mean` and `bits_sd` (n - 1): the bits until
  the horizon of a client, mean over the clients, or of the broadcasts, mean
  over the runs.
  """
  names = captions.name_algorithms(groups, ignored=['code'])
  rows: list[dict[str, Any]] = []
  for task in dict.fromkeys(group.task for group in groups):
    for link, column in zip(('uplink', 'downlink'), _LINKS):
      for group, name in zip(groups, names):
        if group.task == task:
          found = [_last_value(run, column) for run in group.runs]
          mean, spread = mean_and_deviation(found)
          rows.append({
              'task': task, 'algorithm': name, 'link': link,
              'code': code_of(group), 'runs': len(group.runs),
              'bits_mean': mean, 'bits_sd': spread,
          })
  return pd.DataFrame(rows)


def codes_texts(table: pd.DataFrame) -> pd.DataFrame:
  """Returns what `codes_table` returns as texts, with a column per code."""
  keys = ['task', 'algorithm', 'link']
  lines: dict[tuple[str, ...], dict[str, str]] = {}
  for row in table.itertuples():
    line = lines.setdefault((row.task, row.algorithm, row.link), {})
    line[row.code] = tables.mean_text(row.bits_mean, row.bits_sd)
  found = table['code'].unique()
  # Codes that are not known come last, in the order of the table.
  shown = [code for code in _CODES if code in found]
  shown += [code for code in found if code not in shown]
  return pd.DataFrame(
      [
          [*key, *(line.get(code, '-') for code in shown)]
          for key, line in lines.items()
      ],
      columns=[*keys, *shown],
  )


# ---- How settings of CEAL change its regret and bits.


def sensitivity(
    runs: pd.DataFrame, options: argparse.Namespace
) -> tables.Drawn:
  """Regret and bits of CEAL, a row per changed setting.

  The rows are compared with a base, the configuration that the others of its
  task differ from in the fewest settings, all together. In a sweep that changes
  one setting at a time that is the one that all changes start from.
  """
  del options  # It has none of its own.
  groups = groups_lib.group_by_algorithm(runs, COLUMNS)
  table = sensitivity_table(groups)
  texts = outcome_texts(table, ('task', 'variant', 'code'))
  return tables.Drawn(table, texts=texts, notes=sensitivity_notes(groups))


def sensitivity_table(groups: Sequence[Group]) -> pd.DataFrame:
  """Returns one row per group of CEAL, compared with FedPAQ and FedAvg.

  The columns are `task`, `variant` (the settings in which the group differs
  from the base of its task, with the group's values; `base` where there are
  none) and those of `outcome_table`; the base of each task first, then by the
  names of the settings. Raises ValueError if there is no group of CEAL.
  """
  bases = find_bases(groups)
  changes = [
      captions.varied_settings([bases[group.task], group])
      if group.algorithm == _CEAL else []
      for group in groups
  ]
  texts = [
      ', '.join(
          captions.setting_text(name, group.settings[name])
          if name in group.settings else f'{name} by default'
          for name in names
      )
      for group, names in zip(groups, changes)
  ]
  table = outcome_table(groups)
  table.insert(0, 'task', [group.task for group in groups])
  table.insert(1, 'variant', [text or _BASE for text in texts])
  order = sorted(
      (i for i, group in enumerate(groups) if group.algorithm == _CEAL),
      key=lambda i: (groups[i].task, len(changes[i]), changes[i], i),
  )
  return table.iloc[order].reset_index(drop=True)


def find_bases(groups: Sequence[Group]) -> dict[str, Group]:
  """Returns the base of each task that CEAL was run on.

  Of configurations that are as near to the others, the one of more runs is
  taken, then the first. Raises ValueError if there is no group of CEAL.
  """
  found: dict[str, list[Group]] = {}
  for group in groups:
    if group.algorithm == _CEAL:
      found.setdefault(group.task, []).append(group)
  if not found:
    raise ValueError('runs must hold a run of ceal, found none.')

  def find_base(same):
    def distance(group):
      changes = [captions.varied_settings([group, other]) for other in same]
      return sum(map(len, changes)), -len(group.all_runs)

    return min(same, key=distance)

  return {task: find_base(same) for task, same in found.items()}


def sensitivity_notes(groups: Sequence[Group]) -> list[str]:
  """Says what the table shows, of which runs, and what the bases are."""
  shown = [group for group in groups if group.algorithm == _CEAL]
  texts = captions.describe_tasks(shown)
  for task, base in find_bases(groups).items():
    values = ', '.join(
        captions.setting_text(name, value)
        for name, value in base.components['algorithm'].items()
        if name != 'algorithm'
    )
    texts.append(f'The base of {task}: {values}.')
  return [*texts, *NOTES]
