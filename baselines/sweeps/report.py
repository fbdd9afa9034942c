"""What a sweep leaves behind: tables of its runs and best rates, a figure.

results.csv and results.md have a row per run; best.csv and best.md, as in
Appendix D of paper 1, the best rate for each of the other settings.
"""

from collections.abc import Sequence
import math
import pathlib
from typing import Any, Optional

import pandas as pd

from baselines import command
from baselines import files
from baselines.figures import rates as rates_lib
from baselines.figures import style
from baselines.figures import tables
from baselines.results import folder as folder_lib
from baselines.results import ranking
from baselines.results import runs as runs_lib

_RATES = (ranking.GAMMA, *ranking.TUNED)
_NUMBERS = (
    'first_population_loss', 'population_loss', 'test_accuracy', 'last_loss',
    'cumulative_regret', 'uplink_bits', 'downlink_bits',
)
# Column heads that fit on a terminal.
_SHORT = {
    'client_learning_rate': 'gamma',
    'server_learning_rate': 'eta',
    'step_size': 'eta',
    'sampling_seed': 'seed',
    'first_population_loss': 'f(x) first',
    'population_loss': 'f(x) last',
    'test_accuracy': 'accuracy',
    'last_loss': 'mean loss',
    'cumulative_regret': 'regret',
    'uplink_bits': 'bits up',
    'downlink_bits': 'bits down',
}


def report_results(
    runs: Sequence[runs_lib.Run],
    folder: pathlib.Path,
    figure: Optional[str],
    *,
    is_whole: bool = True,
) -> None:
  """Prints and saves the tables, and draws the figure if one is wanted.

  What is saved has all runs of the folder, what is printed those given, one for
  each point. Unless these are the whole sweep, they are printed only.
  """
  if not runs:  # There are more parts than points.
    print('no runs')
    return
  others = _other_runs(runs, folder) if is_whole else []
  everything = [*runs, *others]
  table = results_table(everything)
  if is_whole:  # First: it must not depend on whether prints are seen.
    save_results(table, folder)
  ids = {run.run_id for run in runs}
  print(table_text(table[table['run_id'].isin(ids)]))
  for run in runs:
    if run.reason:
      print(f'{run.path}: {runs_lib.status_text(run)}')
  if not is_whole:
    return
  also = f', with {len(others)} more runs of the folder' if others else ''
  print(f'table{also}: {folder / "results.csv"}, {folder / "results.md"}')
  if save_best_rates(everything, folder):
    print(f'best rates: {folder / "best.csv"}, {folder / "best.md"}')
  if figure:
    _draw(runs, command.user_path('figure', figure))


def results_table(runs: Sequence[runs_lib.Run]) -> pd.DataFrame:
  """Returns one row per run, ordered by algorithm, rates and seeds."""
  best = ranking.best_points(runs)
  varied = _other_varied(runs)
  table = pd.DataFrame([_row(run, best, varied) for run in runs])
  order = ['algorithm', *varied, *_RATES, 'sampling_seed', 'data_seed',
           'model_seed']
  return table.sort_values(order, ignore_index=True, kind='stable')


def save_results(table: pd.DataFrame, folder: pathlib.Path) -> None:
  """Writes results.csv (full precision) and results.md into `folder`.

  Without the times: equal sweeps have equal files.
  """
  table = table.drop(columns='seconds')
  files.write_whole(folder / 'results.csv', table.to_csv(index=False))
  files.write_whole(folder / 'results.md', tables.markdown(_formatted(table)))


def table_text(table: pd.DataFrame) -> str:
  """Returns the table for a terminal."""
  return _formatted(table).rename(columns=_SHORT).to_string(index=False)


def best_rates_table(runs: Sequence[runs_lib.Run]) -> pd.DataFrame:
  """Returns one row for each best point, see `ranking.best_points`.

  The columns are the settings that differ, the rates, the mean over the seeds
  of `last_loss` or `cumulative_regret` (`score` if some algorithms have the one
  and some the other), the number of runs; only where at least two rates were
  compared.
  """
  table = results_table(runs)
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
    counted = [run.run_id for run in runs if run.settings.get('rounds')]
    table['rounds'] = table['rounds'].where(table['run_id'].isin(counted))
  tuned = table[list(ranking.TUNED)].apply(tuple, axis=1)
  others = [table[c].astype(str) for c in settings if c not in ranking.TUNED]
  best = table[(table['best'] != '') & (tuned.groupby(others).transform(
      'nunique') > 1)]
  if best.empty:
    return best
  keys = [c for c in settings if not best[c].isna().all()]
  grouped = best.groupby(keys, dropna=False, sort=False)[score]
  means = grouped.agg(['mean', 'size']).reset_index()
  return means.rename(columns={'mean': score, 'size': 'runs'})


def save_best_rates(
    runs: Sequence[runs_lib.Run], folder: pathlib.Path
) -> bool:
  """Writes best.csv and best.md into `folder`, if rates were compared.

  If none were, removes those of an earlier command, which hold no more.
  """
  table = best_rates_table(runs)
  if table.empty:
    for name in ('best.csv', 'best.md'):
      (folder / name).unlink(missing_ok=True)
    return False
  files.write_whole(folder / 'best.csv', table.to_csv(index=False))
  files.write_whole(folder / 'best.md', tables.markdown(_formatted(table)))
  return True


def _other_varied(runs: Sequence[runs_lib.Run]) -> list[str]:
  """Returns the settings, besides the usual columns, that runs differ in.

  Only runs of one algorithm are compared: others have other settings.
  """
  by_algorithm: dict[str, list[dict[str, Any]]] = {}
  for run in runs:
    by_algorithm.setdefault(run.settings['algorithm'], []).append(
        dict(run.identity)
    )
  varied = {
      name
      for same in by_algorithm.values()
      for name in set().union(*same)
      if len({settings.get(name) for settings in same}) > 1
  }
  return sorted(varied - {*_RATES, 'algorithm'})


def _row(
    run: runs_lib.Run, best: dict[ranking.Key, str], varied: Sequence[str]
) -> dict[str, Any]:
  rates = {**dict.fromkeys(_RATES), **run.config.rates}
  return {
      'algorithm': run.settings['algorithm'],
      **{name: run.setting(name) for name in varied},
      **{name: rates[name] for name in _RATES},
      **{name: run.setting(name) for name in (
          'sampling_seed', 'data_seed', 'model_seed')},
      'status': (
          f'diverged at round {run.round}' if run.diverged else run.status
      ),
      'rounds': run.round,
      **{name: run.final[name] for name in _NUMBERS},
      'best': best.get(ranking.point_key(run), ''),
      'seconds': round(run.final['seconds'], 1),
      'run_id': run.run_id,
  }


def _formatted(table: pd.DataFrame) -> pd.DataFrame:
  """The table as texts; folders are found by the other columns."""
  shown = table.drop(columns='run_id', errors='ignore').astype(object)
  for column in shown:
    shown[column] = [_cell(column, value) for value in shown[column]]
  used = [c for c in shown if any(v != '-' for v in shown[c])]
  # What is the same in all rows, or a seed like the first, needs no column.
  spare = [c for c in ('algorithm', 'data_seed', 'model_seed') if c in used]
  first_seed = shown.get('sampling_seed')  # Means over seeds have none.
  constant = [
      c for c in spare
      if shown[c].nunique() == 1 or shown[c].equals(first_seed)
  ]
  return shown.loc[:, [c for c in used if c not in constant]]


def _cell(column: str, value: Any) -> str:
  missing = value is None or (isinstance(value, float) and math.isnan(value))
  if missing or value == '':
    return '-'
  if column in _RATES:
    return f'{value:g}'
  return f'{value:.4g}' if isinstance(value, float) else str(value)


def _other_runs(
    runs: Sequence[runs_lib.Run], folder: pathlib.Path
) -> list[runs_lib.Run]:
  """Returns the runs of other commands in the folder: its table keeps them."""
  own, found = {run.path.name for run in runs}, []
  known = {run.run_id for run in runs}
  for path in sorted(folder.glob('*/config.json')):
    if path.parent.name not in own:
      run_folder = folder_lib.RunFolder(path.parent)
      try:
        run = runs_lib.summarize(run_folder.read_config(), run_folder)
      except command.InputError as error:
        print(f'not in the table: {command.one_line(error)}')
        continue
      if run.run_id in known:  # It would count twice in means.
        print(
            f'not in the table: {run.path} is a second folder of {run.run_id}'
        )
      else:
        found.append(run)
        known.add(run.run_id)
  return found


def _draw(runs: Sequence[runs_lib.Run], figure: pathlib.Path) -> None:
  """Draws the runs that can be read; says what the others lack."""
  readable = []
  for run in runs:
    if run.round:
      try:
        readable.append(runs_lib.read_run(run.path))
      except ValueError as error:
        print(f'not in the figure: {command.one_line(error)}')
  if readable:
    with style.context():
      drawn = rates_lib.draw_loss(
        runs_lib.table_of(readable), 'population_loss'
      )
      style.save(drawn.figure, figure)
    print(f'figure: {figure}')
