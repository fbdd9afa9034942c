"""The best eta of each gamma: a table, and flags for the next sweep.

Both take runs with gamma and eta whose rates do not decay, and the rule of
`results.ranking`.
"""

import argparse
from collections.abc import Sequence
import math
from typing import Any

import pandas as pd

from baselines.figures import tables
from baselines.results import captions
from baselines.results import groups as groups_lib
from baselines.results import ranking

Group = groups_lib.Group
_EDGE = '*'
_DIVERGED = 'diverged'
_UNFINISHED = 'not finished'
_NOT_RUN = '-'
_FLAGS_HEAD = '# Goes after the flags of a sweep: '


def best_rates(
    runs: pd.DataFrame, options: argparse.Namespace
) -> tables.Drawn:
  """The best eta of each gamma and task (tables of Appendix D)."""
  rule = rule_of(options)
  groups = _constant_groups(runs, rule)
  table = rates_table(groups, rule)
  return tables.Drawn(
      table, texts=rates_texts(table), notes=rates_notes(groups, rule)
  )


def rates_table(
    groups: Sequence[Group], rule: ranking.Rule
) -> pd.DataFrame:
  """Returns one row per task and gamma, and whatever else differs.

  The columns are `task` (with what else tells families of runs apart),
  `client_learning_rate`, `server_learning_rate` (the best one, NaN if no eta
  has a finished run), `score` (what the rule looks at), `at_edge` (whether it
  is the smallest or the largest of those with no unfinished run, as the only
  one is), `num_rates` (of the runs), `num_diverged` and `num_unfinished` (rates
  with such a run).
  """
  names = dict(zip((g.family for g in groups), _family_names(groups)))
  rows = []
  for family, name in names.items():
    members = [group for group in groups if group.family == family]
    best = ranking.best_groups(members, rule)
    # An eta whose run is still to end says nothing about its neighbours.
    compared = [
        member.server_learning_rate
        for member in members
        if not member.num_unfinished
    ]
    eta = best[0].server_learning_rate if best else math.nan
    rows.append({
        'task': name,
        'client_learning_rate': members[0].client_learning_rate,
        'server_learning_rate': eta,
        'score': rule.score(best[0]) if best else math.nan,
        'at_edge': bool(best) and eta in (min(compared), max(compared)),
        'num_rates': len(members),
        'num_diverged': sum(m.num_diverged > 0 for m in members),
        'num_unfinished': sum(m.num_unfinished > 0 for m in members),
    })
  return pd.DataFrame(rows)


def rates_texts(table: pd.DataFrame) -> pd.DataFrame:
  """Returns what `rates_table` returns as texts, a column for each task."""
  gammas = sorted(table.client_learning_rate.unique())
  cells = {
      (row.task, row.client_learning_rate): _rate_cell(row)
      for row in table.itertuples()
  }
  texts = {'gamma': [captions.rate_text(gamma) for gamma in gammas]}
  for task in table.task.unique():
    texts[task] = [cells.get((task, gamma), _NOT_RUN) for gamma in gammas]
  return pd.DataFrame(texts)


def rates_notes(groups: Sequence[Group], rule: ranking.Rule) -> list[str]:
  """Says how the rates were found, and of which runs."""
  found = [
      'The server learning rate eta, of those compared, with the smallest mean '
      f'{rule.quantity} over the last rounds: {rule.last_rounds}, but at most '
      'a tenth of a run. Runs that have diverged or not finished never win. '
      f'{_EDGE}: the smallest or the largest that was compared, or the only '
      f'one, so the best one may lie beyond. {_NOT_RUN}: no such run.'
  ]
  for task in dict.fromkeys(group.task for group in groups):
    same = [group for group in groups if group.task == task]
    parts = captions.describe_rates(same)
    etas = sorted({group.server_learning_rate for group in same})
    parts.append(f'eta {", ".join(map(captions.rate_text, etas))}')
    found.append(f'Of {captions.plain_text("; ".join(parts))}.')
  return found


def rate_flags(
    runs: pd.DataFrame, options: argparse.Namespace
) -> tables.Drawn:
  """The best rates as a flag file for `localupdate-sweep`.

  What is drawn of one sweep is often run again, for longer or with other
  settings: with the best eta of each gamma, or with the rates that
  LocalUpdateDecay is to start from.
  """
  rule = rule_of(options)
  groups = _constant_groups(runs, rule)
  groups_lib.check_one_task(groups)
  if options.start:
    largest = math.inf if options.at_most is None else options.at_most
    return tables.Drawn(content=start_flags(groups, rule, largest))
  return tables.Drawn(content=best_flags(groups, rule))


def best_flags(groups: Sequence[Group], rule: ranking.Rule) -> str:
  """Returns a flag file with the best eta of each gamma.

  Raises ValueError if no run has finished, or they differ in more than rates.
  """
  return (
      f'{_FLAGS_HEAD}the best eta of each gamma.\n'
      f'{_variants(_best_of_each_gamma(groups, rule))}'
  )


def start_flags(
    groups: Sequence[Group], rule: ranking.Rule, largest: float = math.inf
) -> str:
  """Returns a flag file with the largest gamma that works, and its best eta.

  The paper has LocalUpdateDecay start from a gamma that is `moderately large,
  non-divergent`; that it is the largest one, at most `largest`, and its eta
  that of a constant gamma, is a choice of ours. Raises ValueError if no run has
  finished that has no larger gamma, or they differ in more than rates.
  """
  best = [
      group for group in _best_of_each_gamma(groups, rule)
      if group.client_learning_rate <= largest
  ]
  if not best:
    raise ValueError(
        'at_most must leave a gamma with a run that has finished, found '
        f'{largest!r}.'
    )
  start = max(best, key=lambda group: group.client_learning_rate)
  return f'{_FLAGS_HEAD}the rates to start from.\n{_variants([start])}'


def rule_of(options: argparse.Namespace) -> ranking.Rule:
  """Returns the rule that the options ask for."""
  usual = ranking.Rule()
  return ranking.Rule(
      options.selected_by or usual.quantity,
      options.last_rounds or usual.last_rounds,
  )


def _constant_groups(runs: pd.DataFrame, rule: ranking.Rule) -> list[Group]:
  """Returns the groups whose rates do not decay."""
  groups = groups_lib.group_by_rates(runs, [rule.quantity])
  return groups_lib.without_decay(groups)


def _family_names(groups: Sequence[Group]) -> list[str]:
  """Returns the task of each group, and what besides rates tells it apart."""
  names = []
  for group in groups:
    same = [other for other in groups if other.task == group.task]
    parts = [group.task] + [
        captions.setting_text(name, group.settings[name])
        for name in captions.varied_settings(same, groups_lib.RATES)
        if name in group.settings
    ]
    names.append(', '.join(parts))
  return names


def _rate_cell(row: Any) -> str:
  if math.isnan(row.server_learning_rate):
    return _DIVERGED if row.num_diverged == row.num_rates else _UNFINISHED
  text = captions.rate_text(row.server_learning_rate)
  return text + _EDGE if row.at_edge else text


def _best_of_each_gamma(
    groups: Sequence[Group], rule: ranking.Rule
) -> list[Group]:
  best = ranking.best_groups(groups, rule)
  if not best:
    raise ValueError(
        'runs must hold a run that has finished, found none among '
        f'{len(groups)} settings.'
    )
  gammas = [group.client_learning_rate for group in best]
  if len(set(gammas)) < len(gammas):
    names = captions.varied_settings(groups, groups_lib.RATES)
    raise ValueError(
        'runs must have one best eta for each gamma, found runs that differ in '
        f'{", ".join(names)}.'
    )
  return best


def _variants(groups: Sequence[Group]) -> str:
  """Returns a line with a variant for each group, rates to all their digits."""
  variants = [
      f'--sweep_client_learning_rates={group.client_learning_rate!r} '
      f'--sweep_server_learning_rates={group.server_learning_rate!r}'
      for group in groups
  ]
  return f'--sweep_variants={";".join(variants)}\n'
