"""Settings of an experiment: defaults filled in, nonsense refused."""

import dataclasses

import numpy as np
import pytest

from baselines.experiment import config


def test_setting_names_are_unique():
  names = [
      field.name
      for component in config.ExperimentConfig().components.values()
      for field in dataclasses.fields(component)
  ]
  assert len(set(names)) == len(names)


def test_task_defaults_are_filled_in():
  task = config.TaskConfig(task='digits')
  assert dataclasses.asdict(task) == {
      'task': 'digits',
      'model': 'cnn',
      'data_source': 'embedded',
      'data_dir': None,
      'data_seed': 1,
  }
  assert config.TaskConfig(task='emnist_digits').data_seed is None


@pytest.mark.parametrize('wrong, message', [
    ({'task': 'digitz'}, "task must be one of .*found 'digitz'"),
    ({'model': 'vgg'}, "model .*'vgg'"),
    ({'data_source': 'cache'}, "data_source .*'cache'"),
    ({'data_dir': 'x'}, "data_dir would be ignored.*'x'"),
    ({'task': 'femnist', 'data_source': 'cache'}, 'data_dir must be given'),
    ({'task': 'femnist', 'data_seed': 2}, 'data_seed would be ignored'),
    ({'data_seed': -1}, 'data_seed must be at least 0'),
])
def test_task_refused(wrong, message):
  with pytest.raises(ValueError, match=message):
    config.TaskConfig(**wrong)


@pytest.mark.parametrize('wrong, message', [
    ({'batch_size': 0}, 'batch_size must be at least 1, found 0'),
    ({'rounds': 0}, 'rounds must be at least 1'),
    ({'sampling_seed': True}, 'sampling_seed must be a whole number'),
    ({'sampling_seed': 1.0}, 'sampling_seed must be a whole number'),
    ({'dtype': 'float16'}, 'dtype must be one of float32, float64'),
    ({'divergence_factor': 0.5}, 'divergence_factor must be 0 or greater than'),
])
def test_run_refused(wrong, message):
  with pytest.raises(ValueError, match=message):
    config.RunConfig(**wrong)


def test_numpy_seed_equals_python_seed_and_zero_is_a_seed():
  assert config.RunConfig(sampling_seed=np.int64(0)) == config.RunConfig(
      sampling_seed=0
  )


def test_parallel_clients_under_xla_are_refused():
  with pytest.raises(ValueError, match="clients must not be 'parallel'"):
    config.ExecutionConfig(jit='on', clients='parallel')


def test_replace_settings_finds_components_and_checks_again():
  changed = config.replace_settings(
      config.ExperimentConfig(), client_learning_rate=0.0, rounds=7
  )
  assert changed.algorithm.client_learning_rate == 0.0
  assert changed.run.rounds == 7
  with pytest.raises(ValueError, match='rounds must be at least 1'):
    config.replace_settings(changed, rounds=0)
  with pytest.raises(ValueError, match="no setting 'round'"):
    config.replace_settings(changed, round=1)


def test_algorithm_of_unknown_type_is_refused():
  with pytest.raises(ValueError, match='algorithm must be a config'):
    config.ExperimentConfig(algorithm=config.RunConfig())
