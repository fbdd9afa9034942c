"""Settings of an experiment: defaults filled in, nonsense refused."""

import dataclasses

import numpy as np
import pytest

from baselines.settings import algorithms
from baselines.settings import experiment
from baselines.settings import record
from baselines.settings import schema


def test_setting_names_are_unique():
  names = [
      field.name
      for component in experiment.ExperimentConfig().components.values()
      for field in dataclasses.fields(component)
  ]
  assert len(set(names)) == len(names)


@pytest.mark.parametrize('wrong, message', [
    ({'batch_size': 0}, 'batch_size must be at least 1, found 0'),
    ({'rounds': 0}, 'rounds must be at least 1'),
    ({'sampling_seed': 2**63}, 'sampling_seed must be less than 92233720368'),
    ({'model_seed': 2**64}, 'model_seed must be less than 92233720368'),
    ({'sampling_seed': True}, 'sampling_seed must be a whole number'),
    ({'sampling_seed': 1.0}, 'sampling_seed must be a whole number'),
    ({'dtype': 'float16'}, 'dtype must be one of float32, float64'),
    ({'divergence_factor': 0.5}, 'divergence_factor must be 0 or greater than'),
])
def test_run_refused(wrong, message):
  with pytest.raises(ValueError, match=message):
    experiment.RunConfig(**wrong)


def test_numpy_seed_equals_python_seed_and_zero_is_a_seed():
  assert experiment.RunConfig(
    sampling_seed=np.int64(0)
  ) == experiment.RunConfig(sampling_seed=0)


def test_replace_settings_finds_components_and_checks_again():
  changed = experiment.replace_settings(
      experiment.ExperimentConfig(), client_learning_rate=0.0, rounds=7
  )
  assert changed.algorithm.client_learning_rate == 0.0
  assert changed.run.rounds == 7
  with pytest.raises(ValueError, match='rounds must be at least 1'):
    experiment.replace_settings(changed, rounds=0)
  with pytest.raises(ValueError, match='round would be ignored: algo'):
    experiment.replace_settings(changed, round=1)


@pytest.mark.parametrize('devices', [
    'foo', 'GPU', 'CPU:0,', 'CPU:0,cpu:0', 'auto,GPU:0',
])
def test_what_names_no_devices_is_refused(devices):
  with pytest.raises(ValueError, match=f"devices must .* found '{devices}'"):
    experiment.ExecutionConfig(devices=devices)


@pytest.mark.parametrize('devices', [
    'auto', 'gpu:1, GPU:0', '/device:CPU:0',
])
def test_names_of_devices(devices):
  assert experiment.ExecutionConfig(devices=devices).devices == devices


def test_algorithm_of_unknown_type_is_refused():
  with pytest.raises(ValueError, match='algorithm must be a config'):
    experiment.ExperimentConfig(algorithm=experiment.RunConfig())


_HORIZON_TYPES = [
    entry.config_type
    for entry in algorithms.ALGORITHMS.values() if entry.has_horizon
]
_SCALED = experiment.TaskConfig('scaled_regression')


def test_rounds_default_to_100_without_a_horizon():
  base = experiment.ExperimentConfig()
  assert experiment.RunConfig().rounds is None
  assert base.run.rounds == base.num_rounds == 100
  assert not base.counts_regret
  assert base.rates == {
      'client_learning_rate': 0.05, 'server_learning_rate': 0.05
  }


@pytest.mark.parametrize('kind', _HORIZON_TYPES)
def test_horizon_is_the_default_of_paper_2_without_a_server_optimizer(kind):
  settings = experiment.ExperimentConfig(_SCALED, kind())
  assert settings.run.rounds is None
  assert settings.run.horizon == 2000
  assert settings.server_optimizer is None
  assert 'server_optimizer' not in settings.components
  name = algorithms.algorithm_name(kind())
  with pytest.raises(ValueError, match=f'server_optimizer .*ignored by {name}'):
    experiment.ExperimentConfig(
        _SCALED, kind(), experiment.ServerOptimizerConfig()
    )


_EVERY_TYPE = [entry.config_type for entry in algorithms.ALGORITHMS.values()]


def _config(kind, **run):
  return experiment.ExperimentConfig(
      algorithm=kind(), run=experiment.RunConfig(**run)
  )


@pytest.mark.parametrize('kind', _EVERY_TYPE)
def test_every_algorithm_runs_on_either_axis(kind):
  by_rounds, by_horizon = _config(kind, rounds=7), _config(kind, horizon=100)
  assert (by_rounds.run.rounds, by_rounds.run.horizon) == (7, None)
  assert (by_horizon.run.rounds, by_horizon.run.horizon) == (None, 100)
  assert by_rounds.num_rounds == 7
  queries = kind().queries_per_round
  assert by_horizon.num_rounds == (queries and -(-100 // queries))
  for config in (by_rounds, by_horizon):
    assert record.from_tree(record.to_tree(config)) == config


@pytest.mark.parametrize('kind', _EVERY_TYPE)
def test_only_ceal_takes_rounds_and_a_horizon(kind):
  if kind is algorithms.CealConfig:
    assert _config(kind, rounds=7, horizon=100).num_rounds == 7
    return
  with pytest.raises(
      ValueError, match='rounds must not be given with horizon.*found 7 and 100'
  ):
    _config(kind, rounds=7, horizon=100)


@pytest.mark.parametrize('horizon, local_steps, num_rounds', [
    (100, 10, 10), (101, 10, 11), (9, 10, 1), (10, 10, 1), (2000, 100, 20),
])
def test_num_rounds_of_a_rival_counts_the_last_one_cut_short(
    horizon, local_steps, num_rounds
):
  settings = experiment.ExperimentConfig(
      _SCALED, algorithms.FedPaqConfig(local_steps),
      run=experiment.RunConfig(horizon=horizon),
  )
  assert settings.num_rounds == num_rounds


def test_num_rounds_of_ceal_is_known_to_the_run_alone():
  assert experiment.ExperimentConfig(
      _SCALED, algorithms.CealConfig()
  ).num_rounds is None


@pytest.mark.parametrize('kind', _HORIZON_TYPES)
@pytest.mark.parametrize('task', ['scaled_regression', 'mnist_logistic'])
def test_regret_is_exact_by_default_where_f_is_a_formula(kind, task):
  settings = experiment.ExperimentConfig(experiment.TaskConfig(task), kind())
  assert settings.run.regret_every == 1
  assert settings.counts_regret
  thinned = experiment.replace_settings(settings, regret_every=25)
  assert thinned.run.regret_every == 25
  assert thinned.counts_regret


@pytest.mark.parametrize('kind', [
    algorithms.LocalUpdateConfig, algorithms.MamlConfig, algorithms.EpochsConfig
])
def test_regret_of_local_update_is_counted_if_asked_for(kind):
  settings = experiment.ExperimentConfig(_SCALED, kind())
  assert not settings.counts_regret
  assert 'regret_every' not in record.to_tree(settings)['algorithm']
  assert experiment.replace_settings(settings, regret_every=1).counts_regret


@pytest.mark.parametrize('kind', _HORIZON_TYPES)
def test_regret_is_not_counted_where_f_is_no_formula(kind):
  settings = experiment.ExperimentConfig(
    experiment.TaskConfig('digits'), kind()
  )
  assert settings.run.regret_every is None
  assert not settings.counts_regret
  with pytest.raises(
      ValueError, match='regret_every .*ignored: .*digits .*found 25'
  ):
    experiment.replace_settings(settings, regret_every=25)


def test_rates_are_what_lives_in_the_state():
  rates = {
      algorithms.algorithm_name(kind()): experiment.ExperimentConfig(
          _SCALED, kind()
      ).rates
      for kind in _HORIZON_TYPES
  }
  assert rates == {
      'ceal': {'step_size': None},
      'minibatch_sgd': {'step_size': 0.1},
      'fed_avg': {'step_size': 0.1},
      'fed_paq': {'step_size': 0.1},
      'fed_com': {'step_size': 0.1, 'server_factor': 10.0},
  }


def test_initial_point_refused():
  with pytest.raises(ValueError, match='initial_point must be one of model, z'):
    experiment.RunConfig(initial_point='one')


def test_find_setting_names_the_component():
  settings = experiment.ExperimentConfig(_SCALED, algorithms.FedComConfig())
  assert experiment.find_setting(settings, 'server_factor') == (
    'algorithm',
    10.0,
  )
  assert experiment.find_setting(settings, 'rounds') == ('run', None)
  with pytest.raises(ValueError, match='server_learning_rate would be ignored'):
    experiment.find_setting(settings, 'server_learning_rate')


@dataclasses.dataclass(frozen=True)
class _OwnConfig(algorithms.AlgorithmConfig):
  """Settings of an algorithm that reports one kind of loss only."""

  RATES = ('client_learning_rate',)
  client_learning_rate: float = schema.setting(0.1, 'gamma.', minimum=0.0)


def test_algorithm_of_ones_own_needs_no_choice_of_losses(monkeypatch):
  entry = algorithms.AlgorithmEntry(
    _OwnConfig, 'a:b', has_server_optimizer=True
  )
  monkeypatch.setitem(algorithms.ALGORITHMS, 'own', entry)
  found = experiment.ExperimentConfig(algorithm=_OwnConfig())
  assert found.rates == {
      'client_learning_rate': 0.1, 'server_learning_rate': 0.05
  }
  assert found.run.rounds == 100
