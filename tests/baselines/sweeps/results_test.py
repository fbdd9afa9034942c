"""Which rates are best, and the table that says so."""

import pandas as pd
import pytest

from baselines.experiment import config
from baselines.experiment import summary
from baselines.sweeps import results


def _outcome(gamma, eta, last_loss, status='finished', seed=1, rounds=10):
  settings = config.replace_settings(
      config.ExperimentConfig(),
      client_learning_rate=gamma,
      server_learning_rate=eta,
      sampling_seed=seed,
  )
  return summary.RunSummary(
      config=settings, path='runs/x', status=status, round=rounds, reason='',
      first_population_loss=2.5, population_loss=last_loss, test_accuracy=None,
      last_loss=last_loss, seconds=1.25,
  )


def test_best_is_the_smallest_mean_loss_for_each_gamma():
  outcomes = [
      _outcome(0.0, 0.1, 0.9), _outcome(0.0, 1.0, 0.8),
      _outcome(0.5, 0.1, 0.3), _outcome(0.5, 1.0, 0.4),
  ]
  assert results.best_rates(outcomes) == [(0.5, 0.1), (0.0, 1.0)]


@pytest.mark.parametrize('status', ['diverged', 'failed', 'interrupted'])
def test_run_that_has_not_finished_is_never_best(status):
  outcomes = [_outcome(0.0, 0.1, 0.01, status), _outcome(0.0, 1.0, 0.8)]
  assert results.best_rates(outcomes) == [(0.0, 1.0)]
  assert results.best_rates(outcomes[:1]) == []


def test_loss_that_is_missing_or_nan_is_never_best():
  outcomes = [
      _outcome(0.0, 0.1, None), _outcome(0.0, 0.2, float('nan')),
      _outcome(0.0, 1.0, 0.8),
  ]
  assert results.best_rates(outcomes) == [(0.0, 1.0)]


def test_mean_over_seeds_counts_and_one_diverged_seed_excludes():
  outcomes = [
      _outcome(0.0, 0.1, 0.1), _outcome(0.0, 0.1, 0.9, seed=2),
      _outcome(0.0, 0.2, 0.4), _outcome(0.0, 0.2, 0.4, seed=2),
      _outcome(0.0, 0.3, 0.1), _outcome(0.0, 0.3, 0.1, 'diverged', seed=2),
  ]
  assert results.best_rates(outcomes) == [(0.0, 0.2)]


def test_table_has_a_row_for_every_run_in_order():
  table = results.results_table([
      _outcome(0.5, 0.1, 0.3),
      _outcome(0.0, 1.0, None, 'diverged', rounds=7),
      _outcome(0.0, 0.1, 0.9),
  ])
  assert table['client_learning_rate'].tolist() == [0.0, 0.0, 0.5]
  assert table['status'].tolist() == [
      'finished', 'diverged at round 7', 'finished'
  ]
  assert table['best'].tolist() == ['for this gamma', '', 'of all']


def test_csv_keeps_full_precision_and_markdown_is_a_table(tmp_path):
  table = results.results_table([_outcome(0.1, 0.1, 1 / 3)])
  results.save_results(table, tmp_path / 'new')
  read = pd.read_csv(
      tmp_path / 'new' / 'results.csv', float_precision='round_trip'
  )
  assert read['last_loss'][0] == 1 / 3
  assert read['run_id'][0].startswith('digits-gamma0.1-eta0.1-')
  lines = (tmp_path / 'new' / 'results.md').read_text().splitlines()
  assert len(lines) == 3
  assert len({line.count('|') for line in lines}) == 1
  assert '| 0.3333 |' in lines[2]


def test_terminal_text_is_narrow_and_leaves_out_empty_columns():
  text = results.table_text(results.results_table([_outcome(0.1, 0.1, 0.5)]))
  assert 'gamma' in text and 'accuracy' not in text
  assert max(map(len, text.splitlines())) <= 100
