"""Rules between settings, and of texts that have a form: refused by name.

One case for each; rules of single settings are in `declared_test`.
"""

import pytest

from baselines.settings import algorithms
from baselines.settings import commands
from baselines.settings import experiment
from baselines.settings import rates

_Local = algorithms.LocalUpdateConfig
_Rate = rates.RateConfig
_Server = rates.ServerOptimizerConfig
_Task = experiment.TaskConfig
_INVERSE = {'client_schedule': 'inverse'}
_STEPS = {'client_schedule': 'steps'}
_CANONICAL = {'decay_rule': 'canonical'}
_ORACLE = {'epoch_length': 'oracle'}


@pytest.mark.parametrize('kind, settings, message', [
    # Data and model.
    (_Task, {'model': 'vgg'}, "model .*'vgg'"),
    (_Task, {'data_source': 'cache'}, "data_source .*'cache'"),
    (_Task, {'data_dir': 'x'},
     "data_dir would be ignored.*'x'.* Those of digits are embedded"),
    (_Task, {'task': 'femnist', 'data_source': 'cache'},
     'data_dir must be given'),
    (_Task, {'task': 'femnist', 'data_seed': 2}, 'data_seed would be ignored'),
    (_Task, {'task': 'quadratics', 'data_seed': 2}, 'data_seed would be ign'),
    # The run, and how it is computed.
    (experiment.RunConfig, {'divergence_factor': 0.5},
     'divergence_factor must be 0 or greater than 1, found 0.5'),
    *((experiment.ExecutionConfig, {'devices': devices},
       f"devices must .* found '{devices}'")
      for devices in ('foo', 'GPU', 'CPU:0,', 'CPU:0,cpu:0', 'auto,GPU:0')),
    # Theta, and factors of its steps.
    *((_Local, {'theta': theta}, 'theta')
      for theta in ('1:0', '', '0,0', '-1', 'nan', '2:5')),
    (_Local, {'theta': '1:3', 'step_factors': '1,1'}, 'step_factors must be 3'),
    (_Local, {'theta': '1:2', 'step_factors': '1,-1'}, 'step_factors must be'),
    (_Local, {'theta': '1:2', 'step_factors': '1,x'}, "negative.*found '1,x'"),
    # Optimizers.
    (_Local, {'client_momentum': 0.5}, 'client_momentum is a setting of mom'),
    (_Local, {'client_epsilon': 0.1}, 'client_epsilon is a setting of adagrad'),
    (_Server, {'yogi_epsilon': 1e-3}, 'yogi_epsilon .*would be ignored'),
    (_Server, {'yogi_bias_correction': False}, 'yogi_bias_.*would be ignored'),
    (_Server, {'server_optimizer': 'yogi', 'server_momentum': 0.0},
     'server_momentum .*would be ignored'),
    (_Server, {'server_optimizer': 'adam', 'adagrad_epsilon': 1e-7},
     'adagrad_epsilon .*would be ignored'),
    # Quantizers.
    (_Local, {'quantizer_resolution': 0.1}, 'quantizer_resolution would be ig'),
    (_Local, {'quantizer_code': 'run_length'}, 'quantizer_code would be ign'),
    (_Local, {'uplink_quantizer': 'qsgd'}, 'quantizer_resolution must be giv'),
    (_Local, {'uplink_quantizer': 'qsgd', 'quantizer_resolution': 1.5},
     'whole number of levels'),
    (_Local, {'uplink_quantizer': 'grid_vector', 'quantizer_resolution': 0.1,
              'quantizer_code': 'fixed_width'},
     "must not be 'fixed_width' with a grid"),
    # Schedules and decay.
    (_Rate, _INVERSE, 'client_schedule_offset must be given'),
    (_Rate, {'server_schedule': 'steps'}, 'server_schedule_steps must be giv'),
    (_Rate, {'client_schedule_offset': 1.0}, 'client_schedule_offset would be'),
    (_Rate, {'server_schedule_steps': '2:1'}, 'server_schedule_steps would be'),
    (_Rate, {**_STEPS, 'client_schedule_steps': '2-0.5'}, 'be ROUND:FACTOR'),
    (_Rate, {**_STEPS, 'client_schedule_steps': '1:0.5'}, 'rise from 2'),
    (_Rate, {**_STEPS, 'client_schedule_steps': '3:1,2:1'}, 'rise from 2'),
    (_Rate, {**_STEPS, 'client_schedule_steps': '2:inf'}, 'finite factors'),
    (_Rate, {'window': 5}, "window would be ignored: decay_rule is 'none'"),
    (_Rate, {'client_decay': 0.5}, 'client_decay would be ignored'),
    (_Rate, {'representative_clients': 5}, 'representative_clients would be'),
    (_Rate, {**_CANONICAL, **_INVERSE, 'client_schedule_offset': 1.0},
     'decay_rule must be none with a schedule'),
    (_Rate, {**_CANONICAL, 'representative_clients': 5, 'window': 5},
     'window would be ignored: representative_clients is given'),
    (_Rate, {**_CANONICAL, 'min_client_learning_rate': 0.1},
     'min_client_learning_rate would be ignored'),
    (_Rate, {**_CANONICAL, 'patience': 0}, 'patience must be at least 1'),
    (_Rate, {**_CANONICAL, 'server_decay': 1.1}, 'at most 1, found 1.1'),
    # Other algorithms.
    (algorithms.EpochsConfig, {'loss_before_training': 'full'},
     "must not be 'full' with epochs"),
    (algorithms.CealConfig, {**_ORACLE, 'first_stage': 2},
     "first_stage would be ignored: epoch_length is 'oracle', found 2"),
    (algorithms.CealConfig, {**_ORACLE, 'sample_constant': 1.0},
     'sample_constant would be ignored'),
    (algorithms.CealConfig, {**_ORACLE, 'threshold_factor': 5.0},
     'threshold_factor would be ignored'),
    # Results of a sweep.
    (commands.SweepOutputConfig, {'figure': 'a.jpeg2'},
     "figure must end in .*'a.jpeg2'"),
    (commands.SweepOutputConfig, {'shard': '1/2', 'figure': 'a.png'},
     'figure would be ignored: shard'),
])
def test_refused(kind, settings, message):
  with pytest.raises(ValueError, match=message):
    kind(**settings)


@pytest.mark.parametrize('kind, settings', [
    (_Local, {'client_learning_rate': 0}),
    (_Rate, {'decay_rule': 'callback', 'patience': 0}),
    *((experiment.ExecutionConfig, {'devices': devices})
      for devices in ('auto', 'gpu:1, GPU:0', '/device:CPU:0')),
    *((commands.SweepOutputConfig, {'figure': f'a{ending}'})
      for ending in commands.FIGURE_ENDINGS),
])
def test_legal_at_the_edge(kind, settings):
  found = kind(**settings)
  for name, value in settings.items():
    assert getattr(found, name) == value


def _experiment(algorithm, task='scaled_regression', server=None, **run):
  return experiment.ExperimentConfig(
      _Task(task), algorithm, server, run=experiment.RunConfig(**run)
  )


@pytest.mark.parametrize('entry', algorithms.ALGORITHMS.values())
def test_rounds_and_a_horizon_are_for_ceal_alone(entry):
  algorithm = entry.config_type()
  if isinstance(algorithm, algorithms.CealConfig):
    found = _experiment(algorithm, rounds=7, horizon=100)
    assert found.num_rounds == 7
    return
  with pytest.raises(
      ValueError, match='rounds must not be given with horizon.*found 7 and 100'
  ):
    _experiment(algorithm, rounds=7, horizon=100)


@pytest.mark.parametrize('entry', [
    e for e in algorithms.ALGORITHMS.values() if e.has_horizon
])
def test_what_paper_2_has_no_use_for_is_refused(entry):
  name = algorithms.algorithm_name(entry.config_type())
  with pytest.raises(ValueError, match=f'server_optimizer .*ignored by {name}'):
    _experiment(entry.config_type(), server=_Server())
  with pytest.raises(ValueError, match='regret_every .*digits .*found 25'):
    _experiment(entry.config_type(), 'digits', regret_every=25)


def test_regret_is_counted_at_points_within_a_round():
  # Clients that stay are counted exactly, however far the points are.
  _experiment(algorithms.FedAvgConfig(local_steps=40), regret_every=40)
  _experiment(algorithms.MinibatchSgdConfig(local_steps=40), regret_every=41)
  _experiment(algorithms.CealConfig(), regret_every=10**6)
  for moving in (algorithms.FedComConfig(local_steps=40), _Local(theta='1:40')):
    with pytest.raises(
        ValueError, match='regret_every must be at most 40, .* found 41'
    ):
      _experiment(moving, regret_every=41)


def test_algorithm_of_unknown_type_is_refused():
  with pytest.raises(ValueError, match='algorithm must be a config'):
    experiment.ExperimentConfig(algorithm=experiment.RunConfig())
