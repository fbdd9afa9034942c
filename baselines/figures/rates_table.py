"""The best eta of each gamma and task (paper 1, tables of Appendix D)."""

from collections.abc import Sequence

import pandas as pd

from baselines.figures import horizon_runs
from baselines.figures import rate_captions
from baselines.figures import rate_runs

_EDGE = '*'
_DIVERGED = 'diverged'
_UNFINISHED = 'not finished'
_NOT_RUN = '-'


def rates_table(
    groups: Sequence[rate_runs.RateGroup], rule: rate_runs.Rule
) -> pd.DataFrame:
  """Returns one row per task and gamma, and whatever else differs.

  Args:
    groups: The groups of all tasks.
    rule: Which eta is best.

  Returns:
    The columns `task` (with what else tells families of runs apart),
    `client_learning_rate`, `server_learning_rate` (the best one, NaN if no eta
    has a finished run), `score` (what the rule looks at), `at_edge` (whether
    it is the smallest or the largest of those with no unfinished run, as the
    only one is), `num_rates` (of the runs), `num_diverged` and
    `num_unfinished` (rates with such a run).
  """
  names = dict(zip((g.family for g in groups), _family_names(groups)))
  families: dict[horizon_runs.Key, list[rate_runs.RateGroup]] = {}
  for group in groups:
    families.setdefault(group.family, []).append(group)
  rows = []
  for family, members in families.items():
    best = rate_runs.best_of_each(members, rule)
    # An eta whose run is still to end says nothing about its neighbours.
    compared = [
        member.server_learning_rate
        for member in members
        if not member.num_unfinished
    ]
    eta = best[0].server_learning_rate if best else float('nan')
    rows.append({
        'task': names[family],
        'client_learning_rate': members[0].client_learning_rate,
        'server_learning_rate': eta,
        'score': rule.score(best[0]) if best else float('nan'),
        'at_edge': bool(best) and eta in (min(compared), max(compared)),
        'num_rates': len(members),
        'num_diverged': sum(m.num_diverged > 0 for m in members),
        'num_unfinished': sum(m.num_unfinished > 0 for m in members),
    })
  return pd.DataFrame(rows)


def rates_texts(table: pd.DataFrame) -> pd.DataFrame:
  """Returns what `rates_table` returns as texts, a column for each task."""
  tasks = list(table.task.unique())
  gammas = sorted(table.client_learning_rate.unique())
  cells = {
      (row.task, row.client_learning_rate): _cell(row)
      for row in table.itertuples()
  }
  texts = {'gamma': [rate_captions.rate_text(gamma) for gamma in gammas]}
  for task in tasks:
    texts[task] = [cells.get((task, gamma), _NOT_RUN) for gamma in gammas]
  return pd.DataFrame(texts)


def notes(
    groups: Sequence[rate_runs.RateGroup], rule: rate_runs.Rule
) -> list[str]:
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
    parts = rate_captions.describe(same)
    etas = sorted({group.server_learning_rate for group in same})
    parts.append(f'eta {", ".join(map(rate_captions.rate_text, etas))}')
    found.append(f'Of {rate_captions.plain_text("; ".join(parts))}.')
  return found


def _family_names(groups: Sequence[rate_runs.RateGroup]) -> list[str]:
  """Returns the task of each group, and what besides rates tells it apart."""
  names = []
  for group in groups:
    same = [other for other in groups if other.task == group.task]
    parts = [group.task] + [
        horizon_runs.setting_text(name, group.settings[name])
        for name in horizon_runs.varied_settings(same, rate_runs.RATES)
        if name in group.settings
    ]
    names.append(', '.join(parts))
  return names


def _cell(row) -> str:
  if row.server_learning_rate != row.server_learning_rate:
    return _DIVERGED if row.num_diverged == row.num_rates else _UNFINISHED
  text = rate_captions.rate_text(row.server_learning_rate)
  return text + _EDGE if row.at_edge else text
