"""The grid is every combination, in a fixed order."""

import pytest

from baselines.experiment import config
from baselines.sweeps import grid

_BASE = config.ExperimentConfig()


def test_every_combination_the_last_list_fastest():
  points = grid.points(_BASE, grid.GridConfig('0,0.5', '0.1,1', '1,2'))
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
  (point,) = grid.points(_BASE, grid.GridConfig('0.05'))
  assert point == _BASE


@pytest.mark.parametrize('lists, message', [
    ({}, 'At least one of sweep_client_learning_rates'),
    ({'sweep_client_learning_rates': ''}, 'separated by commas'),
    ({'sweep_client_learning_rates': '0,x'}, 'separated by commas'),
    ({'sweep_server_learning_rates': '1,1.0'}, 'each value once'),
    ({'sweep_sampling_seeds': '1.5'}, 'separated by commas'),
])
def test_lists_refused(lists, message):
  with pytest.raises(ValueError, match=message):
    grid.GridConfig(**lists)


def test_values_are_checked_as_settings():
  with pytest.raises(ValueError, match='client_learning_rate must be at least'):
    grid.points(_BASE, grid.GridConfig('0,-1'))


def test_setting_that_is_given_and_varied_is_refused():
  with pytest.raises(ValueError, match='client_learning_rate would be ignored'):
    grid.points(_BASE, grid.GridConfig('0,1'), {'client_learning_rate'})
