"""Runs share what they can: tasks, programs, evaluators."""

import dataclasses
import types

import numpy as np
import pytest
import tensorflow as tf

from baselines import command
from baselines.regret import optimum
from baselines.settings import algorithms
from baselines.settings import experiment
from baselines.tasks import registry as tasks
from baselines.training import workbench as workbench_lib

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


_YOGI = {'server_optimizer': 'yogi', 'server_momentum': None}
_ADAM = {'server_optimizer': 'adam', 'server_momentum': None}
_ADAGRAD = {'server_optimizer': 'adagrad', 'server_momentum': None}
_CANONICAL = {'decay_rule': 'canonical'}
_CALLBACK = {'decay_rule': 'callback'}
_INVERSE = {
    'client_schedule': 'inverse', 'client_schedule_offset': 1.0,
    'server_schedule': 'inverse', 'server_schedule_offset': 1.0,
}
_STEPS = {
    'client_schedule': 'steps', 'client_schedule_steps': '2:0.5',
    'server_schedule': 'steps', 'server_schedule_steps': '2:0.5',
}
# A program of the first settings must not serve those after any of the changes.
_COMPILED = [
    ({}, [
        {'model': 'cnn'}, {'theta': '1:3'},
        {'clients_per_round': 11}, {'batch_size': 21}, {'dtype': 'float64'},
        {'server_momentum': 0.5}, _YOGI, _ADAM, _ADAGRAD,
        {'client_schedule': 'inverse', 'client_schedule_offset': 1.0},
        {'server_schedule': 'inverse', 'server_schedule_offset': 1.0},
        _INVERSE, _STEPS, _CANONICAL, _CALLBACK,
        {'jit': 'off'}, {'clients': 'loop'}, {'devices': 'CPU:0'},
        {'require_gpu': True}, {'deterministic': False},
        {'tensor_float_32': True}, {'fast_paths': False},
    ]),
    (_YOGI, [
        {'yogi_beta_1': 0.8}, {'yogi_beta_2': 0.8}, {'yogi_epsilon': 1e-3},
        {'yogi_initial_accumulator': 0.2}, {'yogi_bias_correction': False},
    ]),
    (_ADAM, [
        {'adam_beta_1': 0.8}, {'adam_beta_2': 0.8}, {'adam_epsilon': 1e-3},
        {'adam_initial_accumulator': 0.2}, {'adam_bias_correction': False},
    ]),
    (_ADAGRAD, [
        {'adagrad_initial_accumulator': 0.2}, {'adagrad_epsilon': 1e-3},
    ]),
    (_INVERSE, [
        {'client_schedule_offset': 2.0}, {'server_schedule_offset': 2.0},
    ]),
    (_STEPS, [
        {'client_schedule_steps': '2:0.25'}, {'server_schedule_steps': '3:0.5'},
    ]),
    (_CANONICAL, [
        _CALLBACK, {'window': 7}, {'patience': 7}, {'cooldown': 7},
        {'min_improvement': 0.5}, {'client_decay': 0.5}, {'server_decay': 0.5},
    ]),
    (_CALLBACK, [
        {'min_client_learning_rate': 0.01}, {'min_server_learning_rate': 0.01},
    ]),
    ({**_CALLBACK, 'representative_clients': 7}, [
        {'representative_clients': 17}, {'clients_per_round': 11},
    ]),
]


@pytest.fixture(name='built')
def _built(monkeypatch):
  """Lets programs be noted, by the algorithm's settings, in place of built."""
  built = []

  def build(algorithm, unused_context):
    built.append(algorithm)
    return types.SimpleNamespace(process=None, gains_by_xla=True)

  monkeypatch.setattr(
      workbench_lib.algorithms, 'load_builder', lambda _: build
  )
  monkeypatch.setattr(
      workbench_lib.execution, 'compile_process', lambda *_, **__: object()
  )
  monkeypatch.setattr(
      workbench_lib.execution, 'configure', lambda *_, **__: ('/device:CPU:0',)
  )
  return built


@pytest.mark.parametrize('before, changes', [
    (before, changes) for before, all_ in _COMPILED for changes in all_
])
def test_program_is_not_shared_by_what_is_compiled(built, before, changes):
  workbench = workbench_lib.Workbench(report=lambda text: None)
  first = _changed(**before)
  other = experiment.replace_settings(first, **changes)
  programs = [workbench.tools(c).program for c in (first, other, first, other)]
  assert len(built) == 2
  assert programs[:2] == programs[2:] and programs[0] is not programs[1]


def test_what_is_compiled_is_tested_setting_by_setting():
  changed = {
      name for _, all_ in _COMPILED for changes in all_ for name in changes
  }
  components = (_BASE.server_optimizer, _BASE.rate, _BASE.execution)
  names = {f.name for part in components for f in dataclasses.fields(part)}
  assert names - changed == {'server_learning_rate'}


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


@pytest.mark.parametrize('changes', [
    [{'batch_size': 5}, {'batch_size': 20}],
    [{'initial_point': 'zero'}, {'initial_point': 'sphere'}],
    [{'initial_point': 'sphere', 'model_seed': seed} for seed in (1, 2)],
], ids=['batch_size', 'initial_point', 'model_seed'])
def test_constants_of_ceal_are_measured_for_each_run(built, changes):
  workbench = workbench_lib.Workbench(report=lambda text: None)
  base = _horizon(algorithms.CealConfig(50), initial_point='zero')
  expected = []
  for settings in (experiment.replace_settings(base, **c) for c in changes):
    task = workbench.tools(settings).task
    x, y = (np.asarray(f, np.float64) for f in task.train.features)
    (point,) = workbench_lib.initial_weights(
        task.build_model(settings.run.model_seed, 'float32'),
        settings.run.initial_point, settings.run.model_seed,
    ).trainable
    # f = sum_i (<a_i, x> - y_i)^2 / N^2, so of an example it is that by N.
    errors = x @ np.ravel(point) - np.ravel(y)
    gradients = 2.0 * errors[:, np.newaxis] * x / len(x)
    variance = np.var(gradients, axis=0).sum() / settings.run.batch_size
    expected.append(np.sqrt(variance))
  noise_scales = [algorithm.noise_scale for algorithm in built]
  np.testing.assert_allclose(noise_scales, expected, rtol=1e-6)
  assert abs(expected[1] / expected[0] - 1) > 1e-3
  if 'batch_size' in changes[0]:
    assert expected[0] == pytest.approx(2 * expected[1], rel=1e-14)


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
