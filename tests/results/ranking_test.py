"""Which rate is best in a sweep: points, seeds, regret and loss."""

import dataclasses
import pathlib

import pytest

from baselines.results import folder as folder_lib
from baselines.results import ranking
from baselines.results import runs as runs_lib
from baselines.settings import algorithms
from baselines.settings import experiment


def known_run(config, status='finished', **final):
  """Returns a run that was not read, with the numbers given."""
  known = runs_lib.unreadable(config, folder_lib.RunFolder(pathlib.Path('x')))
  final = {**known.final, 'round': 10, 'seconds': 1.0, **final}
  return dataclasses.replace(known, status=status, final=final)


def point(gamma, eta, last_loss, status='finished', seed=1, rounds=10):
  settings = experiment.replace_settings(
      experiment.ExperimentConfig(),
      client_learning_rate=gamma,
      server_learning_rate=eta,
      sampling_seed=seed,
  )
  return known_run(
      settings, status, round=rounds, first_population_loss=2.5,
      population_loss=last_loss, last_loss=last_loss, seconds=1.25,
  )


def _best(outcomes):
  """The best points as (gamma, eta) -> what they are best of."""
  found = {}
  for key, what in ranking.best_points(outcomes).items():
    values = dict(key)
    point = values['client_learning_rate'], values['server_learning_rate']
    assert point not in found
    found[point] = what
  return found


def test_best_is_the_smallest_mean_loss_for_each_gamma():
  outcomes = [
      point(0.0, 0.1, 0.9), point(0.0, 1.0, 0.8),
      point(0.5, 0.1, 0.3), point(0.5, 1.0, 0.4),
  ]
  assert _best(outcomes) == {
      (0.5, 0.1): 'of all', (0.0, 1.0): 'for this gamma'
  }


def test_of_equal_scores_the_smaller_rate_wins():
  outcomes = [point(0.0, eta, 0.5) for eta in (100.0, 20.0, 3.0)]
  assert _best(outcomes) == {(0.0, 3.0): 'of all'}


@pytest.mark.parametrize('status', ['diverged', 'failed', 'interrupted'])
def test_run_that_has_not_finished_is_never_best(status):
  outcomes = [point(0.0, 0.1, 0.01, status), point(0.0, 1.0, 0.8)]
  assert _best(outcomes) == {(0.0, 1.0): 'of all'}
  assert _best(outcomes[:1]) == {}


def test_loss_that_is_missing_or_nan_is_never_best():
  outcomes = [
      point(0.0, 0.1, None), point(0.0, 0.2, float('nan')),
      point(0.0, 1.0, 0.8),
  ]
  assert _best(outcomes) == {(0.0, 1.0): 'of all'}


def test_mean_over_seeds_counts_and_one_diverged_seed_excludes():
  outcomes = [
      point(0.0, 0.1, 0.1), point(0.0, 0.1, 0.9, seed=2),
      point(0.0, 0.2, 0.4), point(0.0, 0.2, 0.4, seed=2),
      point(0.0, 0.3, 0.1), point(0.0, 0.3, 0.1, 'diverged', seed=2),
  ]
  assert _best(outcomes) == {(0.0, 0.2): 'of all'}


def test_points_are_compared_by_the_seeds_that_all_have():
  outcomes = [
      point(0.0, 0.1, 0.5), point(0.0, 0.1, 0.7, seed=2),
      point(0.0, 0.2, 0.6, seed=2),
  ]
  # 0.6 and 0.6 in the mean over all, but 0.7 and 0.6 with seed 2.
  assert _best(outcomes) == {(0.0, 0.2): 'of all'}
  # Between gammas it is the seeds of their best points.
  outcomes += [point(0.5, 0.1, 0.65, seed=2), point(0.5, 0.1, 0.1)]
  assert _best(outcomes) == {
      (0.0, 0.2): 'of all', (0.5, 0.1): 'for this gamma'
  }
  # With none in common each has its own.
  assert _best([point(0.0, 0.1, 0.5), point(0.0, 0.2, 0.4, seed=2)]) == {
      (0.0, 0.2): 'of all'
  }


def regret_point(
    algorithm, regret, status='finished', seed=1, bits=None, **changes
):
  base = experiment.ExperimentConfig(
      experiment.TaskConfig('scaled_regression'),
      algorithms.ALGORITHMS[algorithm].config_type(),
  )
  settings = experiment.replace_settings(
      base, data_seed=seed, model_seed=seed, sampling_seed=seed, **changes
  )
  return known_run(
      settings, status, last_loss=1.0, cumulative_regret=regret,
      uplink_bits=bits, downlink_bits=bits,
  )


def _best_of(outcomes):
  """The best points as (algorithm, step size, horizon), each `BEST`."""
  found = ranking.best_points(outcomes)
  assert set(found.values()) <= {ranking.BEST}
  return {
      tuple(dict(k)[n] for n in ('algorithm', 'step_size', 'horizon'))
      for k in found
  }


def test_regret_ranks_where_it_is_counted_whatever_the_loss():
  outcomes = [
      regret_point('fed_avg', regret, step_size=eta)
      for regret, eta in ((9.0, 0.1), (5.0, 0.2), (7.0, 0.5))
  ]
  final = {**outcomes[0].final, 'last_loss': 0.1}
  outcomes[0] = dataclasses.replace(outcomes[0], final=final)
  assert _best_of(outcomes) == {('fed_avg', 0.2, 2000)}


def test_each_algorithm_and_each_variant_has_its_best_step_size():
  outcomes = [
      regret_point('fed_avg', 9.0, step_size=0.1),
      regret_point('fed_avg', 5.0, step_size=0.2),
      regret_point('fed_paq', 99.0, step_size=0.1),
      regret_point('fed_paq', 50.0, step_size=1.0),
      regret_point('ceal', 3.0, step_size=2.0, noise_scale=1.0),
      regret_point('ceal', 4.0, step_size=1.0, noise_scale=1.0),
      regret_point('fed_avg', 70.0, step_size=0.1, horizon=4000),
      regret_point('fed_avg', 80.0, step_size=0.2, horizon=4000),
  ]
  assert _best_of(outcomes) == {
      ('fed_avg', 0.2, 2000), ('fed_paq', 1.0, 2000), ('ceal', 2.0, 2000),
      ('fed_avg', 0.1, 4000),
  }


def test_seeds_of_data_model_and_sampling_are_one_mean():
  outcomes = [
      regret_point('fed_avg', 1.0, step_size=0.1),
      regret_point('fed_avg', 9.0, step_size=0.1, seed=2),
      regret_point('fed_avg', 4.0, step_size=0.2),
      regret_point('fed_avg', 4.0, step_size=0.2, seed=2),
      regret_point('fed_avg', 0.1, step_size=0.5),
      regret_point('fed_avg', 0.1, 'diverged', step_size=0.5, seed=2),
  ]
  assert _best_of(outcomes) == {('fed_avg', 0.2, 2000)}


@pytest.mark.parametrize('regret', [float('nan'), float('inf')])
def test_regret_that_is_not_finite_is_never_best(regret):
  outcomes = [regret_point('fed_avg', regret, step_size=0.1)]
  assert _best_of(outcomes) == set()


def test_how_runs_are_computed_makes_no_other_point():
  outcomes = [
      regret_point('fed_avg', 1.0, step_size=0.1, jit='on'),
      regret_point('fed_avg', 9.0, step_size=0.1, jit='off', seed=2),
      regret_point('fed_avg', 4.0, step_size=0.2),
      regret_point('fed_avg', 4.0, step_size=0.2, seed=2),
  ]
  assert _best_of(outcomes) == {('fed_avg', 0.2, 2000)}
