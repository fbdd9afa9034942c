"""A sweep is every combination of its lists, for each of its variants."""

import dataclasses
import math

import numpy as np
import pytest

from baselines import command
from baselines.settings import algorithms
from baselines.settings import commands
from baselines.settings import experiment
from baselines.settings import record
from baselines.sweeps import grid

_BASE = experiment.ExperimentConfig()


def _points(given=(), **lists):
  """The points of the lists that the command's flags give."""
  return grid.grid_points(dict(given), grid.GridConfig(**lists).varied)


def test_every_combination_the_last_list_fastest():
  points = _points(
      sweep_client_learning_rates='0,0.5', sweep_server_learning_rates='0.1,1',
      sweep_sampling_seeds='1,2',
  )
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
  assert _points(sweep_client_learning_rates='0.05') == [_BASE]
  assert grid.grid_points({}, {}) == [_BASE]


@pytest.mark.parametrize('lists, message', [
    ({'sweep_client_learning_rates': '0,x'}, 'separated by commas'),
    ({'sweep_server_learning_rates': '1,1.0'}, 'each value once'),
    ({'sweep_sampling_seeds': '1.5'}, 'separated by commas'),
])
def test_lists_refused(lists, message):
  with pytest.raises(ValueError, match=message):
    grid.GridConfig(**lists)


def _refused(message, given, **lists):
  with pytest.raises(command.InputError, match=message):
    grid.grid_points(given, lists)


def test_values_are_checked_as_settings():
  _refused('client_learning_rate must be at least', {},
           client_learning_rate=[0.0, -1.0])


def test_setting_that_is_given_and_varied_is_refused():
  _refused('client_learning_rate would be ignored: the grid',
           {'client_learning_rate': 0.1}, client_learning_rate=[0.0, 1.0])


def _declared():
  """A second value for each setting of the default experiment."""
  found = {}
  for part in _BASE.components.values():
    for field in dataclasses.fields(part):
      value = getattr(part, field.name)
      choices = [c for c in field.metadata['choices'] if c != value]
      if value is not None and field.name not in record.CHANGEABLE:
        found[field.name] = (
            choices[0] if choices
            else not value if isinstance(value, bool)
            else value + 1 if isinstance(value, (int, float)) else None
        )
  return {name: value for name, value in found.items() if value is not None}


@pytest.mark.parametrize('name', [
    name for name in _declared()
    # These ask for others, which have tests of their own.
    if name not in ('task', 'data_source', 'client_schedule', 'decay_rule',
                    'server_schedule', 'uplink_quantizer', 'server_momentum')
])
def test_any_declared_setting_can_vary(name):
  other = _declared()[name]
  first, second = grid.grid_points(
      {}, {name: [record.setting_value(_BASE, name), other]}
  )
  assert first == _BASE
  assert record.setting_value(second, name) == other
  assert list(record.differences(first, second))[0] == name


def test_what_depends_on_a_setting_follows_it():
  points = grid.grid_points({}, {'task': ['digits', 'linear_regression']})
  assert [p.task.model for p in points] == ['cnn', 'linear']
  points = grid.grid_points(
      {'quantizer_resolution': 3.0}, {'uplink_quantizer': ['qsgd', 'uniform']}
  )
  assert [p.algorithm.quantizer_code for p in points] == ['fixed_width'] * 2
  # Values without a meaning for one of the combinations are refused.
  _refused("theta would be ignored: algorithm is 'ceal'", {'noise_scale': 1.0},
           algorithm=['ceal'], theta=['1:2'])


def test_texts_of_one_value_are_one_run():
  points = grid.grid_points({}, {'theta': ['1,1', '1:2', 'k2']})
  assert [p.algorithm.theta for p in points] == ['1:2', 'k2']


def test_runs_that_share_data_and_programs_follow_each_other():
  points = grid.grid_points({}, {
      'seeds': [1, 2], 'server_learning_rate': [0.1, 1.0],
      'theta': ['1:2', '1:3'], 'model': ['cnn', 'logistic'],
  })
  found = [
      (p.task.model, p.algorithm.theta, p.rates['server_learning_rate'],
       p.run.sampling_seed) for p in points
  ]
  assert found == sorted(found) and len(found) == 16


@pytest.mark.parametrize('algorithm', ['fed_avg', 'minibatch_sgd', 'fed_com'])
def test_one_step_size_behind_two_rates_can_vary(algorithm):
  points = grid.grid_points(
      {'algorithm': algorithm, 'task': 'scaled_regression'},
      {'step_size': [0.1, 2.0]},
  )
  assert [p.rates['step_size'] for p in points] == [0.1, 2.0]
  _refused('client_learning_rate would be ignored', {'algorithm': algorithm},
           client_learning_rate=[0.1])


@pytest.mark.parametrize('lists, message', [
    ({'thetas': ['1:2']}, "Unknown setting 'thetas'. Did you mean theta?"),
    ({'output_dir': ['a']}, "Unknown setting 'output_dir'"),
    ({'theta': '1:2'}, "theta must be a list of values to sweep, found '1:2'"),
    ({'rounds': 3}, 'rounds must be a list of values to sweep, found 3'),
    ({'theta': []}, 'theta must have a value'),
    ({'theta': ['1:2', '1:2']}, 'theta must name each value once'),
    ({'batch_size': [1.5]}, 'batch_size must be a whole number, found 1.5'),
    ({'seeds': ['1']}, 'sampling_seed must be a whole number'),
])
def test_lists_of_the_python_interface_refused(lists, message):
  with pytest.raises(command.InputError, match=message):
    grid.typed_lists(lists)


def test_lists_of_the_python_interface_take_numbers_of_numpy():
  found = grid.typed_lists({
      'client_learning_rate': np.array([0.0, 0.5], np.float32),
      'seeds': range(2), 'model': [None, 'cnn'],
  })
  assert found == {
      'client_learning_rate': [0.0, 0.5], 'seeds': [0, 1],
      'model': [None, 'cnn'],
  }
  assert {type(v) for v in found['client_learning_rate']} == {float}


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


def _seeds(points):
  return [
      (p.task.data_seed, p.run.model_seed, p.run.sampling_seed) for p in points
  ]


def test_seeds_are_those_of_data_model_and_sampling_together():
  assert _seeds(_points(sweep_seeds='4:5')) == [(4, 4, 4), (5, 5, 5)]


def test_fixed_data_have_no_seed_to_vary():
  given = {'task': 'femnist', 'data_source': 'synthetic'}
  points = _points(given, sweep_seeds='4:5')
  assert _seeds(points) == [(None, 4, 4), (None, 5, 5)]


@pytest.mark.parametrize('seed', ['data_seed', 'model_seed', 'sampling_seed'])
def test_seed_that_is_given_and_varied_is_refused(seed):
  _refused(f'{seed} would be ignored', {seed: 1}, seeds=[1, 2])
  if seed == 'sampling_seed':  # And so is one that two lists vary.
    _refused(f'{seed} would be ignored', {}, seeds=[1], sampling_seed=[3])


@pytest.mark.parametrize('algorithm, setting', [
    ('local_update', 'step_size'), ('ceal', 'client_learning_rate'),
    ('ceal', 'server_learning_rate'),
])
def test_rate_that_the_algorithm_lacks_is_refused(algorithm, setting):
  _refused(f'{setting} would be ignored', {'algorithm': algorithm},
           **{setting: [1.0]})


def test_too_many_values_are_refused_at_once():
  with pytest.raises(ValueError, match='sweep_seeds must be at most 10000'):
    grid.GridConfig(sweep_seeds='1:100000000')


def _plan(*arguments, lists=None):
  configs, _ = grid.plan_points(
      arguments, 'A command.', commands.SweepOutputConfig, lists
  )
  return configs


def _names(configs):
  return [algorithms.algorithm_name(c.algorithm) for c in configs]


@pytest.mark.parametrize('text, expected', [
    ('', [[]]),
    ('--a=1 --b=2;--c=3', [['--a=1', '--b=2'], ['--c=3']]),
    ('; --a="x y;z"', None),
    (" ;--output_dir='my runs' --a", [[], ['--output_dir=my runs', '--a']]),
])
def test_split_as_a_shell_would(text, expected):
  if expected is None:
    with pytest.raises(command.InputError, match='must be flags separated'):
      grid.split_variants(text)
  else:
    assert grid.split_variants(text) == expected


def test_same_set_twice_is_refused():
  with pytest.raises(command.InputError, match='each set of flags once'):
    grid.split_variants('--a=1;--b; --a=1')


def test_variants_in_order_each_with_the_lists_of_all():
  configs = _plan(
      '--task=scaled_regression', '--horizon=60', '--sweep_step_sizes=1,2',
      '--sweep_variants=--algorithm=fed_avg --local_steps=20;'
      '--algorithm=ceal --noise_scale=1',
  )
  assert _names(configs) == ['fed_avg'] * 2 + ['ceal'] * 2
  assert [c.algorithm.step_size for c in configs] == [1.0, 2.0, 1.0, 2.0]
  assert {c.run.horizon for c in configs} == {60}
  assert configs[0].algorithm.local_steps == 20


def test_variant_may_have_lists_of_its_own():
  configs = _plan(
      '--task=scaled_regression', '--sweep_seeds=1:2',
      '--sweep_variants=--algorithm=fed_avg --sweep_step_sizes=1,2;'
      '--algorithm=minibatch_sgd --step_size=5',
  )
  found = [
      (name, c.algorithm.step_size, c.task.data_seed, c.run.sampling_seed)
      for name, c in zip(_names(configs), configs)
  ]
  assert found == [
      ('fed_avg', 1.0, 1, 1), ('fed_avg', 1.0, 2, 2),
      ('fed_avg', 2.0, 1, 1), ('fed_avg', 2.0, 2, 2),
      ('minibatch_sgd', 5.0, 1, 1), ('minibatch_sgd', 5.0, 2, 2),
  ]


def test_without_variants_there_are_the_points_of_the_lists():
  configs = _plan('--sweep_client_learning_rates=0,0.5')
  assert [c.algorithm.client_learning_rate for c in configs] == [0.0, 0.5]


def test_lists_of_the_python_interface_join_those_of_a_preset():
  configs = _plan(
      '--sweep_client_learning_rates=0,1', lists={'theta': ['1:2', '1:3']}
  )
  assert [(c.algorithm.theta, c.algorithm.client_learning_rate)
          for c in configs] == [
      ('1:2', 0.0), ('1:2', 1.0), ('1:3', 0.0), ('1:3', 1.0)
  ]
  assert _plan('--rounds=3', lists={})[0].run.rounds == 3
  with pytest.raises(command.InputError, match='rate would be ignored'):
    _plan('--sweep_client_learning_rates=0,1',
          lists={'client_learning_rate': [0.5]})


def test_equal_points_of_two_variants_are_one():
  configs = _plan(
      '--task=scaled_regression', '--algorithm=fed_avg',
      '--sweep_variants=;--step_size=0.1;--step_size=0.2',
  )
  assert [c.algorithm.step_size for c in configs] == [0.1, 0.2]


def test_variant_may_be_a_preset_and_win_over_it():
  (config,) = _plan(
      '--task=scaled_regression',
      '--sweep_variants=--preset=paper2_synthetic_ceal --code=elias_gamma',
  )
  assert config.algorithm.code == 'elias_gamma'
  assert config.algorithm.noise_scale == 0.6


@pytest.mark.parametrize('arguments, message', [
    ([], 'At least one of sweep_client_learning_rates'),
    (['--sweep_variants=;--dry_run'], 'must not be in a variant, found'),
    (['--sweep_variants=;--shard=1/2'], 'must not be in a variant, found'),
    (['--sweep_variants=--output_dir=x'], 'must not be in a variant, found'),
    (['--sweep_variants=--theta=1:2;--sweep_variants=--rounds=3'],
     'must not be in a variant, found'),
    (['--sweep_variants=--theta=1:2;--algorithm=fedavg'], "'fedavg'"),
    (['--theta=1:2', '--sweep_variants=--algorithm=ceal'],
     "theta would be ignored: algorithm is 'ceal'"),
    (['--sweep_step_sizes=1,2',
      '--sweep_variants=--algorithm=fed_avg --step_size=1'],
     'step_size would be ignored: the grid varies it'),
    (['--sweep_step_sizes=1,2', '--sweep_variants=--theta=1:2'],
     'step_size would be ignored'),
    (['--sweep_variants=--clients_per_round=101;--theta=k2'],
     'clients_per_round must be at most 100'),
    (['--sweep_variants=;stray'], 'flags must start with --'),
    (['--sweep_variants=--theta=1:2;--theta=1:3;'], 'in front of the others'),
    (['--sweep_variants=--theta=1:2; ;--theta=1:3'], 'in front of the others'),
    (['--rounds=7', '--sweep_variants=--rounds=5 --theta=1:2;--rounds=3'],
     'rounds would be ignored: each of sweep_variants has one of its own'),
    (['--preset=paper2_synthetic', '--step_size=0.7'],
     'step_size would be ignored: each of sweep_variants'),
    (['--preset=paper2_synthetic_growth', '--horizon', '700'],
     'horizon would be ignored: each of sweep_variants'),
    (['--preset=paper1_fig2a', '--preset=paper1_tiny',
      '--sweep_server_learning_rates=0.1,1'],
     'sweep_server_learning_rates would be ignored: each of sweep_variants'),
    (['--sweep_variants=--step_size=1 --preset=paper2_synthetic_ceal',
      '--task=scaled_regression'], 'step_size would be ignored: preset paper2'),
])
def test_variants_refused(arguments, message):
  with pytest.raises(command.InputError, match=message):
    _plan(*arguments)


def test_what_some_variants_override_holds_for_the_others():
  configs = _plan(
      '--rounds=7', '--sweep_variants=--theta=1:2;--theta=1:3 --rounds=5'
  )
  assert [config.run.rounds for config in configs] == [7, 5]
  # Presets may be overridden, and what is the same is not ignored.
  (config,) = _plan('--rounds=7', '--sweep_variants=--rounds=7')
  assert config.run.rounds == 7


def test_variants_that_name_one_run_are_refused():
  with pytest.raises(command.InputError, match='must not differ in rounds'):
    _plan('--sweep_variants=--rounds=5;--rounds=3')


def test_constants_that_nobody_can_compute_are_asked_for():
  variant = '--sweep_variants=--algorithm=ceal --noise_scale=1'
  with pytest.raises(command.InputError, match='step_size must be given'):
    _plan(variant)
  # A list gives them, too.
  configs = _plan(f'{variant} --sweep_step_sizes=0.1,1')
  assert [c.algorithm.step_size for c in configs] == [0.1, 1.0]
