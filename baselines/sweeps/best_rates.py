"""The best rate for each of the other settings: the tables of Appendix D."""

import pathlib
from typing import Sequence

import pandas as pd

from baselines import files
from baselines.run import folder as folder_lib
from baselines.run import summary
from baselines.sweeps import results


def best_rates_table(outcomes: Sequence[summary.RunSummary]) -> pd.DataFrame:
  """Returns one row for each best point, see `results.best_points`.

  The paper's rule: of all eta, for each gamma, the one with the smallest mean
  of the loss over the last rounds, at most 100.

  Args:
    outcomes: The runs of a sweep.

  Returns:
    Columns: the settings that differ, the rates, the mean over the seeds of
    `last_loss` or `cumulative_regret` (`score` if some algorithms have the one
    and some the other), the number of runs; only where at least two rates were
    compared.
  """
  table = results.results_table(outcomes)
  regret = table['cumulative_regret'].astype(float)
  is_counted = regret[table['status'] == folder_lib.FINISHED].notna()
  if not is_counted.any():
    score = 'last_loss'
  elif is_counted.all():
    score = 'cumulative_regret'
  else:  # Algorithms of both kinds.
    score = 'score'
    table[score] = regret.fillna(table['last_loss'].astype(float))
  settings = list(table.columns[: list(table.columns).index('sampling_seed')])
  if 'rounds' in settings:  # A horizon is reached in any number of them.
    table['rounds'] = table['rounds'].where(table['step_size'].isna())
  rates = table[list(results.TUNED)].apply(tuple, axis=1)
  others = [table[c].astype(str) for c in settings if c not in results.TUNED]
  best = table[(table['best'] != '') & (rates.groupby(others).transform(
      'nunique') > 1)]
  if best.empty:
    return best
  keys = [c for c in settings if not best[c].isna().all()]
  grouped = best.groupby(keys, dropna=False, sort=False)[score]
  means = grouped.agg(['mean', 'size']).reset_index()
  return means.rename(columns={'mean': score, 'size': 'runs'})


def save_best_rates(
    outcomes: Sequence[summary.RunSummary], folder: pathlib.Path
) -> bool:
  """Writes best.csv and best.md into `folder`, if rates were compared.

  If none were, removes those of an earlier command, which hold no more.
  """
  table = best_rates_table(outcomes)
  if table.empty:
    for name in ('best.csv', 'best.md'):
      (folder / name).unlink(missing_ok=True)
    return False
  files.write_whole(folder / 'best.csv', table.to_csv(index=False))
  files.write_whole(folder / 'best.md', results.markdown(table))
  return True
