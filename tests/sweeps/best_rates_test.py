"""The tables of Appendix D: the best rate for each of the other settings."""

import dataclasses

import pandas as pd
import pytest

from baselines.run import summary
from baselines.settings import algorithms
from baselines.settings import experiment
from baselines.sweeps import best_rates


def _outcome(score, algorithm='local_update', status='finished', **changes):
  has_horizon = algorithms.ALGORITHMS[algorithm].has_horizon
  task = 'scaled_regression' if has_horizon else 'digits'
  base = experiment.ExperimentConfig(
    experiment.TaskConfig(task), algorithms.ALGORITHMS[algorithm].config_type()
  )
  return summary.RunSummary(
      config=experiment.replace_settings(base, **changes), path='runs/x',
      status=status, round=10, reason='', first_population_loss=2.0,
      population_loss=1.0, test_accuracy=None,
      last_loss=None if has_horizon else score,
      cumulative_regret=score if has_horizon else None, uplink_bits=None,
      downlink_bits=None, seconds=1.0,
  )


def _grid():
  scores = {
      (0.0, 0.1, 1): 0.9, (0.0, 0.1, 2): 0.7,
      (0.0, 1.0, 1): 0.5, (0.0, 1.0, 2): 0.7,
      (0.5, 0.1, 1): 0.2, (0.5, 0.1, 2): 0.25,
      (0.5, 1.0, 1): 0.1, (0.5, 1.0, 2): 0.1,
  }
  return [
      _outcome(
          score, client_learning_rate=gamma, server_learning_rate=eta,
          sampling_seed=seed,
          status='diverged' if (gamma, eta, seed) == (0.5, 1.0, 2)
          else 'finished',
      )
      for (gamma, eta, seed), score in scores.items()
  ]


def test_best_server_rate_for_each_client_rate_by_the_mean_over_seeds():
  table = best_rates.best_rates_table(_grid())
  assert table['client_learning_rate'].tolist() == [0.0, 0.5]
  # 0.6 < 0.8; with gamma 0.5 a diverged seed shuts eta 1 out.
  assert table['server_learning_rate'].tolist() == [1.0, 0.1]
  assert table['last_loss'].tolist() == pytest.approx([0.6, 0.225])
  assert table['runs'].tolist() == [2, 2]


def test_regret_is_the_score_where_it_is_counted():
  outcomes = [
      _outcome(score, name, step_size=eta)
      for name, eta, score in (
          ('fed_avg', 0.1, 60.0), ('fed_avg', 0.2, 50.0),
          ('fed_paq', 0.1, 70.0), ('fed_paq', 0.2, 80.0),
      )
  ]
  table = best_rates.best_rates_table(outcomes)
  assert table['algorithm'].tolist() == ['fed_avg', 'fed_paq']
  assert table['step_size'].tolist() == [0.2, 0.1]
  assert table['cumulative_regret'].tolist() == [50.0, 70.0]
  assert 'last_loss' not in table


def test_algorithms_of_both_kinds_have_their_own_score(tmp_path):
  outcomes = [
      _outcome(60.0, 'fed_avg', step_size=0.1),
      _outcome(50.0, 'fed_avg', step_size=0.2),
      _outcome(0.9, server_learning_rate=0.1),
      _outcome(0.8, server_learning_rate=1.0),
  ]
  table = best_rates.best_rates_table(outcomes)
  assert table['algorithm'].tolist() == ['fed_avg', 'local_update']
  assert table['score'].tolist() == [50.0, 0.8]
  assert best_rates.save_best_rates(outcomes, tmp_path)
  lines = (tmp_path / 'best.md').read_text().splitlines()
  assert lines[0].startswith('| algorithm |')
  assert [line.split(' | ')[0] for line in lines[2:]] == [
      '| fed_avg', '| local_update'
  ]


def test_nothing_to_choose_from_is_no_table(tmp_path):
  outcomes = [_outcome(0.5, sampling_seed=seed) for seed in (1, 2)]
  assert best_rates.best_rates_table(outcomes).empty
  assert best_rates.save_best_rates(_grid(), tmp_path)
  assert not best_rates.save_best_rates(outcomes, tmp_path)
  assert not list(tmp_path.iterdir())


def test_nothing_finished_is_no_table(tmp_path):
  outcomes = [
      _outcome(0.5, status='diverged', server_learning_rate=eta)
      for eta in (0.1, 1.0)
  ]
  assert not best_rates.save_best_rates(outcomes, tmp_path)


def test_both_files_are_written(tmp_path):
  assert best_rates.save_best_rates(_grid(), tmp_path)
  read = pd.read_csv(tmp_path / 'best.csv', float_precision='round_trip')
  assert read['server_learning_rate'].tolist() == [1.0, 0.1]
  lines = (tmp_path / 'best.md').read_text().splitlines()
  assert len(lines) == 4
  assert 'server_learning_rate' in lines[0] and '| 0.6 |' in lines[2]


def test_lengths_of_runs_are_apart_and_exchanges_are_not():
  grid = [
      (rounds, eta, 1.0 / rounds + abs(eta - best))
      for rounds, best in ((10, 0.1), (40, 0.2)) for eta in (0.1, 0.2)
  ]
  outcomes = [
      _outcome(score, rounds=rounds, server_learning_rate=eta)
      for rounds, eta, score in grid
  ]
  outcomes = [
      dataclasses.replace(outcome, round=outcome.config.run.rounds)
      for outcome in outcomes
  ]
  # As many exchanges as it takes: no other length.
  outcomes += [
      dataclasses.replace(
          _outcome(5.0 + eta, 'fed_avg', step_size=eta, sampling_seed=seed),
          round=7 + seed,
      )
      for eta in (1.0, 2.0) for seed in (1, 2)
  ]
  table = best_rates.best_rates_table(outcomes)
  assert table['rounds'].tolist()[1:] == [10, 40]
  assert table['server_learning_rate'].tolist()[1:] == [0.1, 0.2]
  assert table['step_size'][0] == 1.0 and table['runs'].tolist() == [2, 1, 1]
