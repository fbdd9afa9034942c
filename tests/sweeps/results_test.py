"""Which rates are best, and the table that says so."""

import dataclasses

import pandas as pd
import pytest

from baselines.run import summary
from baselines.settings import algorithms
from baselines.settings import experiment
from baselines.sweeps import results


def _outcome(gamma, eta, last_loss, status='finished', seed=1, rounds=10):
  settings = experiment.replace_settings(
      experiment.ExperimentConfig(),
      client_learning_rate=gamma,
      server_learning_rate=eta,
      sampling_seed=seed,
  )
  return summary.RunSummary(
      config=settings, path='runs/x', status=status, round=rounds, reason='',
      first_population_loss=2.5, population_loss=last_loss, test_accuracy=None,
      last_loss=last_loss, cumulative_regret=None, uplink_bits=None,
      downlink_bits=None, seconds=1.25,
  )


def _best(outcomes):
  """The best points as (gamma, eta) -> what they are best of."""
  found = {}
  for key, what in results.best_points(outcomes).items():
    values = dict(key)
    point = values['client_learning_rate'], values['server_learning_rate']
    assert point not in found
    found[point] = what
  return found


def test_best_is_the_smallest_mean_loss_for_each_gamma():
  outcomes = [
      _outcome(0.0, 0.1, 0.9), _outcome(0.0, 1.0, 0.8),
      _outcome(0.5, 0.1, 0.3), _outcome(0.5, 1.0, 0.4),
  ]
  assert _best(outcomes) == {
      (0.5, 0.1): 'of all', (0.0, 1.0): 'for this gamma'
  }


def test_of_equal_scores_the_smaller_rate_wins():
  outcomes = [_outcome(0.0, eta, 0.5) for eta in (100.0, 20.0, 3.0)]
  assert _best(outcomes) == {(0.0, 3.0): 'of all'}


@pytest.mark.parametrize('status', ['diverged', 'failed', 'interrupted'])
def test_run_that_has_not_finished_is_never_best(status):
  outcomes = [_outcome(0.0, 0.1, 0.01, status), _outcome(0.0, 1.0, 0.8)]
  assert _best(outcomes) == {(0.0, 1.0): 'of all'}
  assert _best(outcomes[:1]) == {}


def test_loss_that_is_missing_or_nan_is_never_best():
  outcomes = [
      _outcome(0.0, 0.1, None), _outcome(0.0, 0.2, float('nan')),
      _outcome(0.0, 1.0, 0.8),
  ]
  assert _best(outcomes) == {(0.0, 1.0): 'of all'}


def test_mean_over_seeds_counts_and_one_diverged_seed_excludes():
  outcomes = [
      _outcome(0.0, 0.1, 0.1), _outcome(0.0, 0.1, 0.9, seed=2),
      _outcome(0.0, 0.2, 0.4), _outcome(0.0, 0.2, 0.4, seed=2),
      _outcome(0.0, 0.3, 0.1), _outcome(0.0, 0.3, 0.1, 'diverged', seed=2),
  ]
  assert _best(outcomes) == {(0.0, 0.2): 'of all'}


def test_points_are_compared_by_the_seeds_that_all_have():
  outcomes = [
      _outcome(0.0, 0.1, 0.5), _outcome(0.0, 0.1, 0.7, seed=2),
      _outcome(0.0, 0.2, 0.6, seed=2),
  ]
  # 0.6 and 0.6 in the mean over all, but 0.7 and 0.6 with seed 2.
  assert _best(outcomes) == {(0.0, 0.2): 'of all'}
  # Between gammas it is the seeds of their best points.
  outcomes += [_outcome(0.5, 0.1, 0.65, seed=2), _outcome(0.5, 0.1, 0.1)]
  assert _best(outcomes) == {
      (0.0, 0.2): 'of all', (0.5, 0.1): 'for this gamma'
  }
  # With none in common each has its own.
  assert _best([_outcome(0.0, 0.1, 0.5), _outcome(0.0, 0.2, 0.4, seed=2)]) == {
      (0.0, 0.2): 'of all'
  }


def test_runs_of_other_lengths_are_not_compared():
  outcomes = []
  for eta, loss, rounds in ((0.1, 0.5, 10), (0.2, 0.6, 10), (0.2, 0.1, 40)):
    outcome = _outcome(0.0, eta, loss, rounds=rounds)
    settings = experiment.replace_settings(outcome.config, rounds=rounds)
    outcomes.append(dataclasses.replace(outcome, config=settings))
  table = results.results_table(outcomes)
  assert table['rounds'].tolist() == [10, 10, 40]
  assert table['best'].tolist() == ['of all', '', 'of all']
  assert list(table).index('rounds') < list(table).index('sampling_seed')


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


def _regret(algorithm, regret, status='finished', seed=1, bits=None, **changes):
  base = experiment.ExperimentConfig(
      experiment.TaskConfig('scaled_regression'),
      algorithms.ALGORITHMS[algorithm].config_type(),
  )
  settings = experiment.replace_settings(
      base, data_seed=seed, model_seed=seed, sampling_seed=seed, **changes
  )
  return summary.RunSummary(
      config=settings, path='runs/x', status=status, round=10, reason='',
      first_population_loss=None, population_loss=None, test_accuracy=None,
      last_loss=1.0, cumulative_regret=regret, uplink_bits=bits,
      downlink_bits=bits, seconds=1.0,
  )


def _best_of(outcomes):
  """The best points as (algorithm, step size, horizon), each `BEST`."""
  found = results.best_points(outcomes)
  assert set(found.values()) <= {results.BEST}
  return {
      tuple(dict(k)[n] for n in ('algorithm', 'step_size', 'horizon'))
      for k in found
  }


def test_regret_ranks_where_it_is_counted_whatever_the_loss():
  outcomes = [
      _regret('fed_avg', regret, step_size=eta)
      for regret, eta in ((9.0, 0.1), (5.0, 0.2), (7.0, 0.5))
  ]
  outcomes[0] = dataclasses.replace(outcomes[0], last_loss=0.1)
  assert _best_of(outcomes) == {('fed_avg', 0.2, 2000)}


def test_each_algorithm_and_each_variant_has_its_best_step_size():
  outcomes = [
      _regret('fed_avg', 9.0, step_size=0.1),
      _regret('fed_avg', 5.0, step_size=0.2),
      _regret('fed_paq', 99.0, step_size=0.1),
      _regret('fed_paq', 50.0, step_size=1.0),
      _regret('ceal', 3.0, step_size=2.0, noise_scale=1.0),
      _regret('ceal', 4.0, step_size=1.0, noise_scale=1.0),
      _regret('fed_avg', 70.0, step_size=0.1, horizon=4000),
      _regret('fed_avg', 80.0, step_size=0.2, horizon=4000),
  ]
  assert _best_of(outcomes) == {
      ('fed_avg', 0.2, 2000), ('fed_paq', 1.0, 2000), ('ceal', 2.0, 2000),
      ('fed_avg', 0.1, 4000),
  }


def test_seeds_of_data_model_and_sampling_are_one_mean():
  outcomes = [
      _regret('fed_avg', 1.0, step_size=0.1),
      _regret('fed_avg', 9.0, step_size=0.1, seed=2),
      _regret('fed_avg', 4.0, step_size=0.2),
      _regret('fed_avg', 4.0, step_size=0.2, seed=2),
      _regret('fed_avg', 0.1, step_size=0.5),
      _regret('fed_avg', 0.1, 'diverged', step_size=0.5, seed=2),
  ]
  assert _best_of(outcomes) == {('fed_avg', 0.2, 2000)}


@pytest.mark.parametrize('regret', [float('nan'), float('inf')])
def test_regret_that_is_not_finite_is_never_best(regret):
  outcomes = [_regret('fed_avg', regret, step_size=0.1)]
  assert _best_of(outcomes) == set()


def test_how_runs_are_computed_makes_no_other_point():
  outcomes = [
      _regret('fed_avg', 1.0, step_size=0.1, jit='on'),
      _regret('fed_avg', 9.0, step_size=0.1, jit='off', seed=2),
      _regret('fed_avg', 4.0, step_size=0.2),
      _regret('fed_avg', 4.0, step_size=0.2, seed=2),
  ]
  assert _best_of(outcomes) == {('fed_avg', 0.2, 2000)}


def test_columns_of_several_algorithms_appear():
  table = results.results_table([
      _regret('fed_paq', 2.0, bits=2440.0),
      _regret('ceal', 1.0, bits=426.0, noise_scale=0.6, step_size=2.0),
      _regret('ceal', 3.0, bits=444.0, noise_scale=0.6, step_size=2.0, seed=2),
  ])
  assert table['algorithm'].tolist() == ['ceal', 'ceal', 'fed_paq']
  assert table['data_seed'].tolist() == [1, 2, 1]
  # Settings that differ between algorithms alone are no columns.
  assert 'noise_scale' not in table and 'code' not in table
  head = results.table_text(table).splitlines()[0].split()
  for shown in ('algorithm', 'eta', 'seed', 'regret', 'up'):
    assert shown in head
  for hidden in ('gamma', 'accuracy', 'first', 'last', 'run_id'):
    assert hidden not in head


def test_columns_that_say_nothing_vanish():
  table = results.results_table([
      _regret('fed_avg', 2.0, step_size=0.1), _regret('fed_avg', 1.0),
  ])
  head = results.table_text(table).splitlines()[0].split()
  for hidden in ('algorithm', 'data_seed', 'up', 'down', 'gamma'):
    assert hidden not in head
  assert 'regret' in head
  # What the table shows as text is a projection: the CSV has all columns.
  assert {'algorithm', 'data_seed', 'uplink_bits'} <= set(table)


@pytest.mark.parametrize('changes, column, cells', [
    ({'model_seed': 2}, 'model_seed', ['1', '2']),
    ({'jit': 'off'}, 'jit', ['auto', 'off']),
    ({'fast_paths': False}, 'fast_paths', ['False', 'True']),
])
def test_runs_that_differ_can_be_told_apart(changes, column, cells):
  base = _outcome(0.5, 1.0, 0.3)
  other = experiment.replace_settings(base.config, **changes)
  table = results.results_table(
      [base, dataclasses.replace(base, config=other)]
  )
  assert [str(cell) for cell in table[column]] == cells
  assert column in results.table_text(table).splitlines()[0].split()
  assert table['best'].tolist() == ['of all'] * 2  # Of the same point.


def test_other_settings_that_vary_have_a_column():
  table = results.results_table([
      _regret('ceal', 1.0, noise_scale=0.6, code='run_length'),
      _regret('ceal', 2.0, noise_scale=0.6, code='elias_gamma'),
      _regret('fed_avg', 3.0),
  ])
  assert table['code'].tolist()[:2] == ['elias_gamma', 'run_length']
  assert pd.isna(table['code'][2])
  lines = results.table_text(table).splitlines()
  assert 'code' in lines[0].split() and 'run_length' in lines[2]
