"""Settings of an experiment: what is filled in where nothing is given."""

import dataclasses

import pytest

from baselines.settings import algorithms
from baselines.settings import experiment
from baselines.settings import record
from baselines.settings import schema


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


def test_task_defaults_are_filled_in():
  task = experiment.TaskConfig(task='digits')
  assert dataclasses.asdict(task) == {
      'task': 'digits',
      'model': 'cnn',
      'data_source': 'embedded',
      'data_dir': None,
      'data_seed': 1,
  }
  assert experiment.TaskConfig(task='emnist_digits').data_seed is None


def test_spellings_of_a_folder_are_one():
  configs = {
      experiment.TaskConfig('femnist', data_source='cache', data_dir=text)
      for text in ('a/b', './a/b', 'a/b/', 'a//b', 'a/c/../b')
  }
  assert len(configs) == 1
