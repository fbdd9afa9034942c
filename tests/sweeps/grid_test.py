"""The grid is every combination, in a fixed order."""

import math

import pytest

from baselines.settings import algorithms
from baselines.settings import experiment
from baselines.sweeps import grid

_BASE = experiment.ExperimentConfig()


def test_every_combination_the_last_list_fastest():
  points = grid.grid_points(_BASE, grid.GridConfig(
      '0,0.5', '0.1,1', sweep_sampling_seeds='1,2'
  ))
  found = [
      (
          p.algorithm.client_learning_rate,
          p.server_optimizer.server_learning_rate,
          p.run.sampling_seed,
      )
      for p in points
  ]
  assert found == [
      (0.0, 0.1, 1), (0.0, 0.1, 2), (0.0, 1.0, 1), (0.0, 1.0, 2),
      (0.5, 0.1, 1), (0.5, 0.1, 2), (0.5, 1.0, 1), (0.5, 1.0, 2),
  ]


def test_what_does_not_vary_is_the_base():
  (point,) = grid.grid_points(_BASE, grid.GridConfig('0.05'))
  assert point == _BASE


@pytest.mark.parametrize('lists, message', [
    ({}, 'At least one of sweep_client_learning_rates'),
    ({'sweep_client_learning_rates': ''}, 'must not be empty'),
    ({'sweep_client_learning_rates': '0,x'}, 'separated by commas'),
    ({'sweep_server_learning_rates': '1,1.0'}, 'each value once'),
    ({'sweep_sampling_seeds': '1.5'}, 'separated by commas'),
])
def test_lists_refused(lists, message):
  with pytest.raises(ValueError, match=message):
    grid.GridConfig(**lists)


def test_values_are_checked_as_settings():
  with pytest.raises(ValueError, match='client_learning_rate must be at least'):
    grid.grid_points(_BASE, grid.GridConfig('0,-1'))


def test_setting_that_is_given_and_varied_is_refused():
  with pytest.raises(ValueError, match='client_learning_rate would be ignored'):
    grid.grid_points(_BASE, grid.GridConfig('0,1'), {'client_learning_rate'})


def _rates(text):
  return grid.GridConfig(sweep_step_sizes=text).varied['step_size']


@pytest.mark.parametrize('text, values', [
    ('decades:-3:0', [0.001, 0.01, 0.1, 1.0]),
    ('one_two_five:-1:1', [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0]),
    ('one_two_five:-4:-2',
     [0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01]),
    ('half_decades:0:1', [1.0, math.sqrt(10.0), 10.0]),
    ('half_decades:-2:-1', [0.01, 0.03162277660168379, 0.1]),
    ('decades:2:2', [100.0]),
    ('0.3,decades:0:1,7', [0.3, 1.0, 10.0, 7.0]),
])
def test_named_grids_have_exact_values(text, values):
  # As typed: 10.0 ** -3 would be another number than 0.001 on some machines.
  found = _rates(text)
  assert len(found) == len(values)
  for value, expected in zip(found, values):
    if 'half' in text:
      assert value == pytest.approx(expected, rel=1e-15)
    else:
      assert value == expected


@pytest.mark.parametrize('text, seeds', [
    ('3', [3]), ('1:4', [1, 2, 3, 4]), ('0:1,7,9:9', [0, 1, 7, 9]),
])
def test_ranges_of_seeds(text, seeds):
  for name in ('sampling_seed', 'seeds'):
    lists = {f'sweep_{name.removesuffix("s")}s': text}
    assert grid.GridConfig(**lists).varied == {name: seeds}


@pytest.mark.parametrize('lists, message', [
    ({'sweep_step_sizes': 'octaves:0:1'}, 'must be numbers .*octaves:0:1'),
    ({'sweep_step_sizes': 'decades:1:0'}, 'must be numbers'),
    ({'sweep_step_sizes': 'decades:0'}, 'must be numbers'),
    ({'sweep_step_sizes': 'decades:0:1:2'}, 'must be numbers'),
    ({'sweep_step_sizes': 'decades:0:0.5'}, 'must be numbers'),
    ({'sweep_step_sizes': '1:3'}, 'must be numbers'),
    ({'sweep_step_sizes': 'decades:0:1,10'}, 'each value once'),
    ({'sweep_seeds': '3:1'}, 'sweep_seeds must be numbers'),
    ({'sweep_seeds': '1:2:3'}, 'sweep_seeds must be numbers'),
    ({'sweep_seeds': ':3'}, 'sweep_seeds must be numbers'),
    ({'sweep_seeds': 'decades:0:1'}, 'sweep_seeds must be numbers'),
    ({'sweep_sampling_seeds': '1:3,2'}, 'each value once'),
])
def test_ranges_and_grids_refused(lists, message):
  with pytest.raises(ValueError, match=message):
    grid.GridConfig(**lists)


def test_seeds_are_those_of_data_model_and_sampling_together():
  points = grid.grid_points(_BASE, grid.GridConfig(sweep_seeds='4:5'))
  found = [
      (p.task.data_seed, p.run.model_seed, p.run.sampling_seed) for p in points
  ]
  assert found == [(4, 4, 4), (5, 5, 5)]


def test_fixed_data_have_no_seed_to_vary():
  base = experiment.ExperimentConfig(
      task=experiment.TaskConfig('femnist', data_source='synthetic')
  )
  points = grid.grid_points(base, grid.GridConfig(sweep_seeds='4:5'))
  found = [
      (p.task.data_seed, p.run.model_seed, p.run.sampling_seed) for p in points
  ]
  assert found == [(None, 4, 4), (None, 5, 5)]
  # So a seed of the data is nobody's business here.
  with pytest.raises(ValueError, match='model_seed would be ignored'):
    grid.grid_points(base, grid.GridConfig(sweep_seeds='4'), {'model_seed'})


@pytest.mark.parametrize('seed', ['data_seed', 'model_seed', 'sampling_seed'])
def test_seed_that_is_given_and_varied_is_refused(seed):
  with pytest.raises(ValueError, match=f'{seed} would be ignored'):
    grid.grid_points(_BASE, grid.GridConfig(sweep_seeds='1,2'), {seed})


def test_seed_that_two_lists_vary_is_refused():
  lists = grid.GridConfig(sweep_seeds='1,2', sweep_sampling_seeds='3,4')
  with pytest.raises(ValueError, match='sampling_seed would be ignored'):
    grid.grid_points(_BASE, lists)


def test_step_sizes_of_an_algorithm_with_a_horizon():
  base = experiment.ExperimentConfig(algorithm=algorithms.FedAvgConfig())
  points = grid.grid_points(base, grid.GridConfig(sweep_step_sizes='0.1,2'))
  assert [p.algorithm.step_size for p in points] == [0.1, 2.0]
  with pytest.raises(ValueError, match='step_size must be greater than 0'):
    grid.grid_points(base, grid.GridConfig(sweep_step_sizes='0'))


@pytest.mark.parametrize('algorithm, lists, setting', [
    (experiment.LocalUpdateConfig(), {'sweep_step_sizes': '1'}, 'step_size'),
    (algorithms.CealConfig(), {'sweep_client_learning_rates': '1'},
     'client_learning_rate'),
    (algorithms.CealConfig(), {'sweep_server_learning_rates': '1'},
     'server_learning_rate'),
])
def test_rate_that_the_algorithm_lacks_is_refused(algorithm, lists, setting):
  base = experiment.ExperimentConfig(algorithm=algorithm)
  with pytest.raises(ValueError, match=f'{setting} would be ignored'):
    grid.grid_points(base, grid.GridConfig(**lists))


def test_variants_alone_are_a_grid_of_one_point_each():
  lists = grid.GridConfig(sweep_variants='--theta=1:2;--theta=k2')
  assert lists.varied == {}
  assert grid.grid_points(_BASE, lists) == [_BASE]


def test_too_many_values_are_refused_at_once():
  with pytest.raises(ValueError, match='sweep_seeds must be at most 10000'):
    _ = grid.GridConfig(sweep_seeds='1:100000000').varied
