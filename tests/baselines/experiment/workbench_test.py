"""Runs share what they can: tasks, programs, evaluators."""

import numpy as np
import pytest
import tensorflow as tf

from baselines.experiment import command
from baselines.experiment import config
from baselines.experiment import workbench as workbench_lib

_BASE = config.ExperimentConfig(
    task=config.TaskConfig('digits', model='logistic'),
    algorithm=config.LocalUpdateConfig(theta='1:2'),
)


@pytest.fixture(scope='module', name='workbench')
def _workbench():
  return workbench_lib.Workbench(report=lambda text: None)


def _changed(**changes):
  return config.replace_settings(_BASE, **changes)


@pytest.mark.parametrize('changes, shared', [
    ({'client_learning_rate': 0.5, 'server_learning_rate': 2.0}, True),
    ({'sampling_seed': 7, 'model_seed': 7, 'rounds': 3}, True),
    ({'rounds_per_evaluation': 1, 'divergence_factor': 5.0}, True),
    ({'theta': '1:3'}, False),
    ({'batch_size': 3}, False),
    ({'server_momentum': 0.5}, False),
    ({'dtype': 'float64'}, False),
])
def test_programs_are_shared_between_rates_and_seeds(
    workbench, changes, shared
):
  first, other = workbench.tools(_BASE), workbench.tools(_changed(**changes))
  assert (first.program is other.program) == shared
  assert first.task is other.task
  assert (first.evaluator is other.evaluator) == ('dtype' not in changes)


def test_initial_state_has_the_runs_own_rates_and_weights(workbench):
  first = _changed(client_learning_rate=0.25, server_learning_rate=0.125)
  second = _changed(model_seed=2)
  tools = workbench.tools(first)
  for settings in (first, second, first):
    state = workbench.initial_state(settings)
    hparams = tools.process.get_hparams(state)
    gamma = settings.algorithm.client_learning_rate
    eta = settings.server_optimizer.server_learning_rate
    assert float(hparams['client_learning_rate']) == np.float32(gamma)
    assert float(hparams['server_learning_rate']) == np.float32(eta)
    model = tools.task.build_model(settings.run.model_seed, 'float32')
    weights = tools.process.get_model_weights(state)
    for found, expected in zip(weights.trainable, model.initial_weights[0]):
      np.testing.assert_array_equal(found, expected)


def test_initial_weights_depend_on_the_model_seed_alone(workbench):
  def weights(**changes):
    state = workbench.initial_state(_changed(**changes))
    return [np.asarray(w) for w in tf.nest.flatten(state.model_weights)]

  base = weights()
  assert all(map(np.array_equal, base, weights(sampling_seed=9)))
  assert not all(map(np.array_equal, base, weights(model_seed=9)))


@pytest.mark.parametrize('changes, message', [
    ({'devices': 'CPU:7'}, 'CPU:7'),
    ({'require_gpu': True}, 'require_gpu'),
    ({'clients_per_round': 101}, 'clients_per_round .* 100'),
])
def test_what_the_machine_or_the_data_lack_is_bad_input(
    workbench, changes, message
):
  with pytest.raises(command.InputError, match=message):
    workbench.check(_changed(**changes))
