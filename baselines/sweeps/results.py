"""The table of a sweep, and which of its points is best."""

import math
import pathlib
from typing import Sequence

import pandas as pd

from baselines.experiment import config_json
from baselines.experiment import files
from baselines.experiment import run_folder
from baselines.experiment import summary

Rates = tuple[float, float]

# Column heads that fit on a terminal.
_SHORT = {
    'client_learning_rate': 'gamma',
    'server_learning_rate': 'eta',
    'sampling_seed': 'seed',
    'first_population_loss': 'f(x) first',
    'population_loss': 'f(x) last',
    'test_accuracy': 'accuracy',
    'last_loss': 'mean loss',
}


def best_rates(outcomes: Sequence[summary.RunSummary]) -> list[Rates]:
  """Returns for each gamma the best eta, the best pair of all first.

  Best is the smallest mean of `last_loss` over the seeds. A pair of rates is
  passed over if not all of its runs have finished: a diverged run is a result,
  but never the best one.

  Args:
    outcomes: The runs of the sweep.

  Returns:
    Pairs (gamma, eta), at most one for each gamma, from best to worst.
  """
  scores: dict[Rates, list[float]] = {}
  for outcome in outcomes:
    scores.setdefault(_rates(outcome), []).append(_score(outcome))
  means = {pair: sum(s) / len(s) for pair, s in scores.items()}
  ranked = sorted((m, pair) for pair, m in means.items() if math.isfinite(m))
  best: dict[float, Rates] = {}
  for _, pair in ranked:
    best.setdefault(pair[0], pair)
  return list(best.values())


def results_table(outcomes: Sequence[summary.RunSummary]) -> pd.DataFrame:
  """Returns one row per run, ordered by gamma, eta and seed."""
  best = best_rates(outcomes)
  rows = [_row(o, best) for o in outcomes]
  order = ['client_learning_rate', 'server_learning_rate', 'sampling_seed']
  return pd.DataFrame(rows).sort_values(order, ignore_index=True)


def save_results(table: pd.DataFrame, folder: pathlib.Path) -> None:
  """Writes results.csv (full precision) and results.md into `folder`."""
  folder.mkdir(parents=True, exist_ok=True)
  files.write_whole(folder / 'results.csv', table.to_csv(index=False))
  files.write_whole(folder / 'results.md', _markdown(table))


def table_text(table: pd.DataFrame) -> str:
  """Returns the table for a terminal."""
  return _formatted(table).rename(columns=_SHORT).to_string(index=False)


def _score(outcome: summary.RunSummary) -> float:
  if outcome.status != run_folder.FINISHED or outcome.last_loss is None:
    return math.inf
  return outcome.last_loss


def _rates(outcome: summary.RunSummary) -> Rates:
  return (
      outcome.config.algorithm.client_learning_rate,
      outcome.config.server_optimizer.server_learning_rate,
  )


def _row(outcome: summary.RunSummary, best: list[Rates]) -> dict[str, object]:
  gamma, eta = _rates(outcome)
  mark = 'for this gamma' if (gamma, eta) in best else ''
  status = outcome.status
  if status == run_folder.DIVERGED:
    status = f'diverged at round {outcome.round}'
  return {
      'client_learning_rate': gamma,
      'server_learning_rate': eta,
      'sampling_seed': outcome.config.run.sampling_seed,
      'status': status,
      'rounds': outcome.round,
      'first_population_loss': outcome.first_population_loss,
      'population_loss': outcome.population_loss,
      'test_accuracy': outcome.test_accuracy,
      'last_loss': outcome.last_loss,
      'best': 'of all' if best[:1] == [(gamma, eta)] else mark,
      'seconds': round(outcome.seconds, 1),
      'run_id': config_json.run_id(outcome.config),
  }


def _formatted(table: pd.DataFrame) -> pd.DataFrame:
  """The table as texts; folders are found by the other columns."""
  shown = table.drop(columns='run_id').astype(object)
  for column in shown:
    shown[column] = [_cell(column, value) for value in shown[column]]
  return shown.loc[:, [c for c in shown if any(v != '-' for v in shown[c])]]


def _cell(column: str, value: object) -> str:
  missing = value is None or (isinstance(value, float) and math.isnan(value))
  if missing or value == '':
    return '-'
  if column in ('client_learning_rate', 'server_learning_rate'):
    return f'{value:g}'
  return f'{value:.4g}' if isinstance(value, float) else str(value)


def _markdown(table: pd.DataFrame) -> str:
  shown = _formatted(table)
  lines = [list(shown.columns), ['---'] * len(shown.columns)]
  lines += shown.values.tolist()
  return ''.join(f'| {" | ".join(cells)} |\n' for cells in lines)
