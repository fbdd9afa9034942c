"""Runs share what they can: tasks, programs, evaluators."""

import numpy as np
import pytest
import tensorflow as tf

from baselines import command
from baselines.regret import optimum
from baselines.run import workbench as workbench_lib
from baselines.settings import algorithms
from baselines.settings import experiment
from baselines.tasks import registry as tasks

_BASE = experiment.ExperimentConfig(
    task=experiment.TaskConfig('digits', model='logistic'),
    algorithm=experiment.LocalUpdateConfig(theta='1:2'),
)


@pytest.fixture(scope='module', name='workbench')
def _workbench():
  return workbench_lib.Workbench(report=lambda text: None)


def _changed(**changes):
  return experiment.replace_settings(_BASE, **changes)


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


def _horizon(algorithm, **changes):
  settings = experiment.ExperimentConfig(
      experiment.TaskConfig('scaled_regression'), algorithm,
      run=experiment.RunConfig(horizon=50),
      execution=experiment.ExecutionConfig(jit='off'),
  )
  return experiment.replace_settings(settings, **changes)


_CEAL = _horizon(
    algorithms.CealConfig(step_size=1.0, noise_scale=1.8)
)
_COM = _horizon(algorithms.FedComConfig(10))


@pytest.mark.parametrize('base, changes, shared', [
    (_CEAL, {'step_size': 0.1, 'sampling_seed': 7, 'model_seed': 7}, True),
    (_CEAL, {'data_seed': 7, 'regret_every': 3}, True),
    (_CEAL, {'initial_point': 'sphere'}, True),
    (_CEAL, {'noise_scale': 1.9}, False),
    (_CEAL, {'horizon': 51}, False),
    (_CEAL, {'code': 'elias_gamma'}, False),
    (_COM, {'step_size': 0.2, 'server_factor': 2.0, 'data_seed': 2}, True),
    (_COM, {'horizon': 51, 'regret_every': 3}, True),
    (_COM, {'quantization_levels': 4}, False),
    (_COM, {'local_steps': 9}, False),
])
def test_programs_of_paper_2_are_shared_between_rates_and_seeds(
    workbench, base, changes, shared
):
  other = experiment.replace_settings(base, **changes)
  first, second = workbench.tools(base), workbench.tools(other)
  assert (first.program is second.program) == shared
  same_data = 'data_seed' not in changes
  assert (first.task is second.task) == same_data
  assert (first.evaluator is second.evaluator) == same_data


def test_oracle_has_its_data_in_the_program(workbench):
  oracle = experiment.replace_settings(_CEAL, epoch_length='oracle')
  for changes, shared in (
      ({'step_size': 0.1}, True), ({'data_seed': 2}, False)
  ):
    other = experiment.replace_settings(oracle, **changes)
    first, second = workbench.tools(oracle), workbench.tools(other)
    assert (first.program is second.program) == shared


def test_regret_is_counted_by_runs_that_ask_for_it(workbench):
  assert workbench.tools(_CEAL).regret is not None
  assert workbench.tools(_BASE).regret is None


def test_optimum_is_solved_once_and_kept_on_the_disk(
    workbench, monkeypatch, tmp_path
):
  monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path))
  solved = []
  original = optimum.solve

  def solve(objective):
    solved.append(objective)
    return original(objective)

  monkeypatch.setattr(optimum, 'solve', solve)
  first = experiment.replace_settings(_COM, data_seed=77)
  for settings in (first, experiment.replace_settings(first, step_size=3.0)):
    workbench.tools(settings)
  assert len(solved) == 1
  assert len(list((tmp_path / 'tff_localupdate').iterdir())) == 1
  other = workbench_lib.Workbench(report=lambda text: None)
  other.tools(first)
  assert len(solved) == 1


def test_xla_is_chosen_where_the_algorithm_gains_by_it(workbench):
  tools = workbench.tools(_CEAL)
  assert not tools.driver.gains_by_xla
  assert workbench.tools(_COM).driver.gains_by_xla


def test_initial_state_has_the_runs_own_step_size_seed_and_weights(workbench):
  for changes in (
      {'step_size': 0.25, 'sampling_seed': 3}, {'step_size': 0.5},
  ):
    settings = experiment.replace_settings(
        _COM, initial_point='sphere', **changes
    )
    state = workbench.initial_state(settings)
    process = workbench.tools(settings).process
    rates = process.get_hparams(state)
    assert float(rates['client_learning_rate']) == changes['step_size']
    assert float(rates['server_learning_rate']) == 10 * changes['step_size']
    assert int(state.aggregator.seed) == settings.run.sampling_seed
    (weights,) = state.model_weights.trainable
    assert np.linalg.norm(weights) == pytest.approx(1.0, abs=1e-6)


def test_devices_are_chosen_before_data_are_read(monkeypatch):
  order = []
  configure, build_task = workbench_lib.execution.configure, tasks.build_task

  def configure_(*args, **kwargs):
    order.append('devices')
    return configure(*args, **kwargs)

  def build_task_(settings):
    order.append('data')
    return build_task(settings)

  monkeypatch.setattr(workbench_lib.execution, 'configure', configure_)
  monkeypatch.setattr(workbench_lib.tasks, 'build_task', build_task_)
  workbench_lib.Workbench(report=lambda text: None).check(_BASE)
  assert order == ['devices', 'data']
