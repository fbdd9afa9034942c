"""Settings survive JSON, and name the run."""

import json

import pytest

from baselines.settings import algorithms
from baselines.settings import experiment
from baselines.settings import record

_BASE = experiment.ExperimentConfig()
_YOGI = experiment.ExperimentConfig(
    task=experiment.TaskConfig('femnist', data_source='cache', data_dir='d'),
    algorithm=experiment.LocalUpdateConfig(theta='0.5,0,2'),
    server_optimizer=experiment.ServerOptimizerConfig('yogi'),
    run=experiment.RunConfig(dtype='float64'),
)


@pytest.mark.parametrize('original', [_BASE, _YOGI])
def test_json_round_trip(original):
  tree = json.loads(record.to_json(original))
  assert record.from_tree(tree) == original


def test_tree_holds_what_is_used_and_nothing_else():
  optimizer = record.to_tree(_BASE)['server_optimizer']
  assert optimizer == {
      'server_optimizer': 'sgd',
      'server_learning_rate': 0.05,
      'server_momentum': 0.0,
  }
  yogi = record.to_tree(_YOGI)['server_optimizer']
  assert yogi['yogi_beta_2'] == 0.99
  assert 'server_momentum' not in yogi


@pytest.mark.parametrize('change, message', [
    (lambda t: t['run'].pop('dtype'), "run .*missing: .'dtype'"),
    (lambda t: t['run'].update(round=1), "run .*unknown: .'round'"),
    (lambda t: t.pop('task'), "config .*missing: .'task'"),
    (lambda t: t['algorithm'].update(algorithm='x'), "algorithm .*'x'"),
    (lambda t: t['run'].update(rounds=-1), 'rounds must be at least 1'),
])
def test_other_trees_are_refused(change, message):
  tree = record.to_tree(_BASE)
  change(tree)
  with pytest.raises(ValueError, match=message):
    record.from_tree(tree)


def test_run_id_is_the_same_for_ever():
  # Finished runs are found again by this name: it must not change.
  expected = 'digits-gamma0.05-eta0.05-564401d375'
  assert record.run_id(_BASE) == expected


@pytest.mark.parametrize('changes, same', [
    ({'rounds': 5}, True),
    ({'rounds_per_checkpoint': 5}, True),
    ({'require_gpu': True}, True),
    ({'rounds_per_evaluation': 5}, False),
    ({'sampling_seed': 5}, False),
    ({'client_learning_rate': 0.051}, False),
    ({'theta': '1:9'}, False),
])
def test_run_id_depends_on_what_happens_in_the_run(changes, same):
  changed = experiment.replace_settings(_BASE, **changes)
  assert (record.run_id(changed) == record.run_id(_BASE)) == same


def test_differences_name_settings_with_both_values():
  changed = experiment.replace_settings(_BASE, theta='k3', rounds=7)
  assert record.differences(_BASE, changed) == {
      'theta': ('1:10', 'k3'),
      'rounds': (100, 7),
  }
  optimizer = record.differences(
      _BASE,
      experiment.ExperimentConfig(
          server_optimizer=experiment.ServerOptimizerConfig('adagrad')
      ),
  )
  assert optimizer['server_momentum'] == (0.0, None)
  assert optimizer['adagrad_epsilon'] == (None, 1e-7)
  # Records do not hold this one at its default.
  plain = experiment.replace_settings(_BASE, fast_paths=False)
  assert record.differences(_BASE, plain) == {'fast_paths': (True, False)}


def _config(algorithm, task='scaled_regression', **changes):
  kind = algorithms.ALGORITHMS[algorithm].config_type
  settings = experiment.ExperimentConfig(experiment.TaskConfig(task), kind())
  return experiment.replace_settings(settings, **changes)


@pytest.mark.parametrize('task', ['scaled_regression', 'digits'])
@pytest.mark.parametrize('algorithm', algorithms.ALGORITHMS)
def test_json_round_trip_of_every_algorithm(algorithm, task):
  original = _config(algorithm, task, initial_point='sphere')
  tree = record.to_tree(original)
  assert tree['algorithm']['algorithm'] == algorithm
  entry = algorithms.ALGORITHMS[algorithm]
  for part in ('server_optimizer', 'rate'):
    assert (part in tree) == entry.has_server_optimizer
  assert ('rounds' in tree['run']) == (not entry.has_horizon)
  counts = entry.has_horizon and task == 'scaled_regression'
  assert ('regret_every' in tree['algorithm']) == counts
  tree = json.loads(record.to_json(original))
  assert record.from_tree(tree) == original


@pytest.mark.parametrize('changes', [
    {'step_size': 0.3, 'noise_scale': 2.0, 'regret_every': 25},
    {'epoch_length': 'oracle', 'clip': False, 'code': 'run_length'},
])
def test_json_round_trip_of_what_was_given(changes):
  original = _config('ceal', **changes)
  tree = record.to_tree(original)
  assert changes.items() <= tree['algorithm'].items()
  assert record.from_tree(tree) == original


@pytest.mark.parametrize('algorithm, change, message', [
    ('ceal', lambda t: t['algorithm'].update(theta='1:2'), 'unknown: .*theta'),
    ('fed_avg', lambda t: t['run'].update(rounds=3),
     'rounds must not be given with horizon'),
    ('ceal', lambda t: t.update(server_optimizer={'server_optimizer': 'sgd'}),
     'server_optimizer'),
    ('fed_avg', lambda t: t['algorithm'].pop('step_size'),
     'missing: .*step_size'),
    ('local_update', lambda t: t.pop('server_optimizer'),
     'missing: .*server_optimizer'),
])
def test_trees_with_parts_of_another_algorithm_are_refused(
    algorithm, change, message
):
  tree = record.to_tree(_config(algorithm))
  change(tree)
  with pytest.raises(ValueError, match=message):
    record.from_tree(tree)


@pytest.mark.parametrize('algorithm, start', [
    ('ceal', 'scaled_regression-ceal-'),
    ('minibatch_sgd', 'scaled_regression-minibatch_sgd-eta0.1-'),
    ('fed_avg', 'scaled_regression-fed_avg-eta0.1-'),
    ('fed_paq', 'scaled_regression-fed_paq-eta0.1-'),
    ('fed_com', 'scaled_regression-fed_com-eta0.1-'),
    ('local_update', 'scaled_regression-gamma0.05-eta0.05-'),
])
def test_run_id_names_algorithm_and_rates(algorithm, start):
  name = record.run_id(_config(algorithm))
  assert name.startswith(start) and len(name) == len(start) + 10


@pytest.mark.parametrize('algorithm, changes', [
    ('ceal', {'horizon': 7}), ('ceal', {'step_size': 0.1}),
    ('ceal', {'clip': False}), ('ceal', {'regret_every': 2}),
    ('fed_paq', {'code': 'elias_gamma'}), ('fed_com', {'server_factor': 1.0}),
    ('local_update', {'initial_point': 'zero'}),
])
def test_run_id_tells_settings_of_paper_2_apart(algorithm, changes):
  base = _config(algorithm)
  changed = experiment.replace_settings(base, **changes)
  assert record.run_id(base) != record.run_id(changed)
