"""How settings of CEAL change its regret and bits: a row per changed setting.

The rows are compared with a base, the configuration that the others of its task
differ from in the fewest settings, all together. In a sweep that changes one
setting at a time that is the one that all changes start from.
"""

from collections.abc import Sequence

import pandas as pd

from baselines.figures import horizon_runs
from baselines.figures import outcomes

_BASE = 'base'


def sensitivity_table(groups: Sequence[horizon_runs.RunGroup]) -> pd.DataFrame:
  """Returns one row per group of CEAL.

  Args:
    groups: The groups, of any tasks; those of FedPAQ and FedAvg are what CEAL
      is compared with.

  Returns:
    `task`, `variant` (the settings in which the group differs from the base of
    its task, with the group's values; `base` where there are none) and the
    columns of `outcomes.outcome_table`; the base of each task first, then by
    the names of the settings.

  Raises:
    ValueError: If there is no group of CEAL.
  """
  bases = find_bases(groups)
  table = outcomes.outcome_table(groups)
  table.insert(0, 'task', [group.task for group in groups])
  changes = [
      _changes(bases[group.task], group) if group.algorithm == 'ceal' else []
      for group in groups
  ]
  texts = [
      ', '.join(
          horizon_runs.setting_text(name, group.settings[name])
          if name in group.settings else f'{name} by default'
          for name in names
      )
      for group, names in zip(groups, changes)
  ]
  table.insert(1, 'variant', [text or _BASE for text in texts])
  order = sorted(
      (i for i, group in enumerate(groups) if group.algorithm == 'ceal'),
      key=lambda i: (groups[i].task, len(changes[i]), changes[i], i),
  )
  return table.iloc[order].reset_index(drop=True)


def sensitivity_texts(table: pd.DataFrame) -> pd.DataFrame:
  """Returns what `sensitivity_table` returns as texts to be read."""
  texts = outcomes.outcome_texts(table)
  for place, name in enumerate(('task', 'variant', 'code')):
    texts.insert(place, name, table[name])
  return texts


def find_bases(
    groups: Sequence[horizon_runs.RunGroup],
) -> dict[str, horizon_runs.RunGroup]:
  """Returns the base of each task that CEAL was run on.

  Of configurations that are as near to the others, the one of more runs is
  taken, then the first one.

  Raises:
    ValueError: If there is no group of CEAL.
  """
  found: dict[str, list[horizon_runs.RunGroup]] = {}
  for group in groups:
    if group.algorithm == 'ceal':
      found.setdefault(group.task, []).append(group)
  if not found:
    raise ValueError('runs must hold a run of ceal, found none.')
  return {task: _find_base(same) for task, same in found.items()}


def notes(groups: Sequence[horizon_runs.RunGroup]) -> list[str]:
  """Says what the table shows, of which runs, and what the bases are."""
  shown = [group for group in groups if group.algorithm == 'ceal']
  texts = horizon_runs.describe_tasks(shown)
  for task, base in find_bases(groups).items():
    settings = base.all_runs[0].components['algorithm']
    values = ', '.join(
        horizon_runs.setting_text(name, value)
        for name, value in settings.items()
        if name != 'algorithm'
    )
    texts.append(f'The base of {task}: {values}.')
  return [*texts, *outcomes.NOTES]


def _find_base(
    groups: Sequence[horizon_runs.RunGroup],
) -> horizon_runs.RunGroup:
  def distance(group: horizon_runs.RunGroup) -> tuple[int, int]:
    changes = sum(len(_changes(group, other)) for other in groups)
    return changes, -len(group.all_runs)

  return min(groups, key=distance)


def _changes(
    base: horizon_runs.RunGroup, group: horizon_runs.RunGroup
) -> list[str]:
  """Returns the settings of `group` that are not as in `base`."""
  return horizon_runs.varied_settings([base, group])
