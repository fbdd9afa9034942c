"""Variants: each is an experiment of its own, with all other flags."""

import pytest

from baselines import command
from baselines.settings import algorithms
from baselines.settings import commands
from baselines.settings import flags
from baselines.sweeps import grid

_OWN = (grid.GridConfig, commands.SweepOutputConfig)


def _plan(*arguments):
  asked = flags.parse_own(arguments, 'A command.', *_OWN)
  return grid.plan_points(arguments, 'A command.', asked)


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
  assert {c.algorithm.horizon for c in configs} == {60}
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
def test_refused(arguments, message):
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
