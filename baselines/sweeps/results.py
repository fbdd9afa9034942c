"""The table of a sweep, and which of its points is best."""

import math
import pathlib
from typing import Sequence

import pandas as pd

from baselines import files
from baselines.figures import tables
from baselines.run import folder as folder_lib
from baselines.run import summary
from baselines.settings import experiment
from baselines.settings import record
from baselines.settings import schema
from baselines.sweeps import grid

# What a sweep tunes for each of the other settings.
TUNED = ('server_learning_rate', 'step_size')
_GAMMA = 'client_learning_rate'
_ROUNDS = 'rounds'
BEST = 'of all'
BEST_FOR_GAMMA = 'for this gamma'

# How a run computes, which changes no result beyond rounding.
_EXECUTION = ('jit', 'clients', 'devices', 'fast_paths')

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

# Settings but some, by name: what several runs have in common.
Key = tuple[tuple[str, schema.Value], ...]


def best_points(outcomes: Sequence[summary.RunSummary]) -> dict[Key, str]:
  """Returns the points with the best tuned rate, and what they are best of.

  A point is all settings but the seeds. Its score is the mean over the seeds of
  the cumulative regret where it is counted, else of `last_loss`; the smallest
  is best. Where some points have more seeds than others, those count which all
  have, if there are any. A point is passed over if not all of its runs have
  finished: a diverged run is a result, but never the best one.

  Args:
    outcomes: The runs of the sweep.

  Returns:
    For each point that has the best server_learning_rate or step_size of those
    that agree in the rest: `BEST` if no other client_learning_rate does better,
    else `BEST_FOR_GAMMA`.
  """
  scores = _finished_scores(outcomes)
  winners = _best_of_each(list(scores), TUNED, scores)
  best = set(_best_of_each(winners, (*TUNED, _GAMMA), scores))
  return {key: BEST if key in best else BEST_FOR_GAMMA for key in winners}


def _finished_scores(
    outcomes: Sequence[summary.RunSummary],
) -> dict[Key, dict[Key, float]]:
  """Returns the scores of points all of whose runs have finished, by seeds."""
  scores: dict[Key, dict[Key, float]] = {}
  for outcome in outcomes:
    key = point_key(outcome.config)
    seeds = tuple(
        (name, value)
        for name, value in _settings(outcome.config)
        if name in grid.SEEDS
    )
    by_seeds = scores.setdefault(key, {})
    by_seeds[seeds] = max(_score(outcome), by_seeds.get(seeds, -math.inf))
  return {
      key: by_seeds
      for key, by_seeds in scores.items()
      if all(map(math.isfinite, by_seeds.values()))
  }


def _best_of_each(
    keys: Sequence[Key],
    varied: Sequence[str],
    scores: dict[Key, dict[Key, float]],
) -> list[Key]:
  """Returns the best of the keys that agree in all but some settings."""
  families: dict[Key, list[Key]] = {}
  for key in keys:
    families.setdefault(without(key, varied), []).append(key)

  def best(family):
    shared = set.intersection(*(set(scores[key]) for key in family))

    def mean(key):
      counted = [scores[key][seeds] for seeds in shared or scores[key]]
      return math.fsum(counted) / len(counted)

    # Of equal scores the smaller rate wins, as in `figures.rate_runs`.
    return min(family, key=lambda key: (mean(key), _tuned(key), repr(key)))

  return [best(family) for family in families.values()]


def _tuned(key: Key) -> list[float]:
  settings_of_point = dict(key)
  return [settings_of_point.get(name) or 0.0 for name in TUNED]


def point_key(config: experiment.ExperimentConfig) -> Key:
  """Returns all settings but the seeds and those that change no result."""
  return without(_settings(config), (*grid.SEEDS, *_EXECUTION))


def without(key: Key, names: Sequence[str]) -> Key:
  """Returns `key` without some settings."""
  return tuple((name, value) for name, value in key if name not in names)


def _settings(config: experiment.ExperimentConfig) -> Key:
  """Returns all settings that a run's identity rests on, and its length."""
  return tuple(
      sorted(
          (name, value)
          for part in record.to_tree(config).values()
          for name, value in part.items()
          if name == _ROUNDS or name not in record.CHANGEABLE
      )
  )


def results_table(outcomes: Sequence[summary.RunSummary]) -> pd.DataFrame:
  """Returns one row per run, ordered by algorithm, rates and seeds."""
  best = best_points(outcomes)
  varied = _other_varied([
      without(_settings(o.config), grid.SEEDS) for o in outcomes
  ])
  table = pd.DataFrame([_row(o, best, varied) for o in outcomes])
  order = ['algorithm', *varied, _GAMMA, 'server_learning_rate', 'step_size',
           'sampling_seed', 'data_seed', 'model_seed']
  return table.sort_values(order, ignore_index=True, kind='stable')


def rows_of(
    table: pd.DataFrame, outcomes: Sequence[summary.RunSummary]
) -> pd.DataFrame:
  """Returns the rows of these runs."""
  ids = {record.run_id(outcome.config) for outcome in outcomes}
  return table[table['run_id'].isin(ids)]


def save_results(table: pd.DataFrame, folder: pathlib.Path) -> None:
  """Writes results.csv (full precision) and results.md into `folder`.

  Without the times: equal sweeps have equal files.
  """
  table = table.drop(columns='seconds')
  files.write_whole(folder / 'results.csv', table.to_csv(index=False))
  files.write_whole(folder / 'results.md', markdown(table))


def table_text(table: pd.DataFrame) -> str:
  """Returns the table for a terminal."""
  return _formatted(table).rename(columns=_SHORT).to_string(index=False)


def _score(outcome: summary.RunSummary) -> float:
  if outcome.status != folder_lib.FINISHED:
    return math.inf
  score = outcome.cumulative_regret
  score = outcome.last_loss if score is None else score
  return score if score is not None and math.isfinite(score) else math.inf


def _other_varied(keys: Sequence[Key]) -> list[str]:
  """Returns the settings, besides the usual columns, that runs differ in.

  Only runs of one algorithm are compared: others have other settings.
  """
  by_algorithm: dict[schema.Value, list[dict[str, schema.Value]]] = {}
  for key in keys:
    by_algorithm.setdefault(dict(key)['algorithm'], []).append(dict(key))
  varied = {
      name
      for runs in by_algorithm.values()
      for name in set().union(*runs)
      if len({run.get(name) for run in runs}) > 1
  }
  return sorted(varied - {*TUNED, _GAMMA, 'algorithm'})


def _row(
    outcome: summary.RunSummary, best: dict[Key, str], varied: Sequence[str]
) -> dict[str, object]:
  config = outcome.config
  key = point_key(config)
  rates = {**dict.fromkeys((_GAMMA, *TUNED)), **config.rates}
  status = outcome.status
  if status == folder_lib.DIVERGED:
    status = f'diverged at round {outcome.round}'
  return {
      'algorithm': dict(key)['algorithm'],
      **{name: record.setting_value(config, name) for name in varied},
      **{name: rates[name] for name in (_GAMMA, *TUNED)},
      'sampling_seed': config.run.sampling_seed,
      'data_seed': config.task.data_seed,
      'model_seed': config.run.model_seed,
      'status': status,
      _ROUNDS: outcome.round,
      'first_population_loss': outcome.first_population_loss,
      'population_loss': outcome.population_loss,
      'test_accuracy': outcome.test_accuracy,
      'last_loss': outcome.last_loss,
      'cumulative_regret': outcome.cumulative_regret,
      'uplink_bits': outcome.uplink_bits,
      'downlink_bits': outcome.downlink_bits,
      'best': best.get(key, ''),
      'seconds': round(outcome.seconds, 1),
      'run_id': record.run_id(config),
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
      c for c in spare if _is_one(shown[c]) or shown[c].equals(first_seed)
  ]
  return shown.loc[:, [c for c in used if c not in constant]]


def _is_one(column: pd.Series) -> bool:
  return column.nunique() == 1


def _cell(column: str, value: object) -> str:
  missing = value is None or (isinstance(value, float) and math.isnan(value))
  if missing or value == '':
    return '-'
  if column in (_GAMMA, *TUNED):
    return f'{value:g}'
  return f'{value:.4g}' if isinstance(value, float) else str(value)


def markdown(table: pd.DataFrame) -> str:
  """Returns the table as Markdown, numbers with four digits."""
  return tables.markdown(_formatted(table))
