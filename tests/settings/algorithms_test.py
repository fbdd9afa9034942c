"""Settings of algorithms: defaults of the papers, and what follows from them.
"""

import dataclasses

import pytest

from baselines.results import records
from baselines.settings import algorithms

_TYPES = [entry.config_type for entry in algorithms.ALGORITHMS.values()]


@pytest.mark.parametrize('kind', _TYPES)
def test_all_settings_are_of_this_kind(kind):
  assert issubclass(kind, algorithms.AlgorithmConfig)
  columns = kind().extra_columns
  assert len(set(columns)) == len(columns)


@pytest.mark.parametrize('kind', _TYPES)
def test_rates_need_no_other_program(kind):
  changed = kind(**{name: 0.25 for name in kind.RATES})
  assert changed != kind()
  assert changed.compiled_settings() == kind().compiled_settings()


@pytest.mark.parametrize('kind, changes', [
    (algorithms.LocalUpdateConfig, {'theta': '1:3'}),
    (algorithms.EpochsConfig, {'num_epochs': 2}),
    (algorithms.MamlConfig, {'num_steps': 2}),
    (algorithms.FedPaqConfig, {'quantization_levels': 7}),
    (algorithms.CealConfig, {'noise_scale': 0.5}),
])
def test_other_settings_do(kind, changes):
  changed = dataclasses.replace(kind(), **changes)
  assert changed.compiled_settings() != kind().compiled_settings()


def test_data_are_part_of_some_programs():
  with_data = {kind for kind in _TYPES if kind().has_data_in_program}
  assert with_data == {algorithms.EpochsConfig}
  assert algorithms.CealConfig(epoch_length='oracle').has_data_in_program


def test_queries_of_a_round_that_settings_tell():
  queries = {
      algorithms.algorithm_name(kind()): kind().queries_per_round
      for kind in _TYPES
  }
  # K-MAML: the gradients at K points, and that at their end.
  assert queries == {
      'local_update': 10, 'local_update_epochs': None, 'k_maml': 6,
      'ceal': None, 'minibatch_sgd': 100, 'fed_avg': 100, 'fed_paq': 100,
      'fed_com': 100,
  }


@pytest.mark.parametrize('kind', _TYPES)
def test_rates_of_the_process_are_known_by_its_names(kind):
  names = set(kind().process_rates)
  assert names <= {'client_learning_rate', 'server_learning_rate', 'step_size'}


def test_defaults_are_the_papers_algorithm():
  config = algorithms.LocalUpdateConfig()
  assert config.step_options == {
      'optimizer': 'sgd', 'proximal_strength': 0.0, 'step_factors': None
  }
  assert config.num_steps == 10


def test_loss_before_training_is_full_where_rates_decay_by_it():
  assert algorithms.LocalUpdateConfig().default_loss(decays=False) == 'drawn'
  assert algorithms.LocalUpdateConfig().default_loss(decays=True) == 'full'
  # Whole epochs are all data of a client already.
  assert algorithms.EpochsConfig().default_loss(decays=True) == 'drawn'


@pytest.mark.parametrize(
    'optimizer, options',
    [
        ('momentum', {'momentum': 0.9}),
        ('adagrad', {'initial_accumulator': 0.1, 'epsilon': 1e-7}),
    ],
)
def test_client_optimizers_take_their_defaults(optimizer, options):
  config = algorithms.EpochsConfig(client_optimizer=optimizer)
  assert config.step_options == {
      'optimizer': optimizer, 'proximal_strength': 0.0, **options
  }


def test_step_factors_are_numbers_for_each_step():
  config = algorithms.LocalUpdateConfig(theta='1:3', step_factors='1,0.5,0')
  assert config.step_options['step_factors'] == (1.0, 0.5, 0.0)


@pytest.mark.parametrize('kind', [
    algorithms.LocalUpdateConfig, algorithms.EpochsConfig, algorithms.MamlConfig
])
@pytest.mark.parametrize(
    'name, resolution, code',
    [
        ('qsgd', 7, 'fixed_width'),
        ('uniform', 1, 'fixed_width'),
        ('grid_vector', 0.5, 'signed_unary'),
        ('grid_coordinate', 2, 'signed_unary'),
    ],
)
def test_quantizers_have_a_code(kind, name, resolution, code):
  config = kind(uplink_quantizer=name, quantizer_resolution=resolution)
  assert config.quantizer_code == code


@pytest.mark.parametrize('theta, canonical, num_steps', [
    ('1:10', '1:10', 10),
    ('1,1,1', '1:3', 3),
    ('k4', 'k4', 4),
    ('0.5,0,2,0', '0.5,0,2', 3),
])
def test_theta_is_kept_in_one_form(theta, canonical, num_steps):
  local_update = algorithms.LocalUpdateConfig(theta=theta)
  assert local_update.theta == canonical
  assert local_update.num_steps == num_steps


_RIVALS = (
  algorithms.MinibatchSgdConfig,
  algorithms.FedAvgConfig,
  algorithms.FedPaqConfig,
  algorithms.FedComConfig,
)


def test_defaults_of_ceal_are_the_packages():
  # The row "package default" of section 8.
  ceal = algorithms.CealConfig()
  found = (
      ceal.step_size, ceal.noise_scale, ceal.sample_constant,
      ceal.failure_probability, ceal.uplink_resolution,
      ceal.downlink_resolution, ceal.first_stage, ceal.grid,
  )
  assert found == (None, None, 40.0, 0.1, 0.9, 0.9, 1, 'vector')
  assert ceal.threshold_factor == 4.0 and ceal.code == 'signed_unary'
  assert ceal.clip and not ceal.reset_stage
  assert not ceal.broadcast_every_exchange and ceal.epoch_length == 'estimated'


def test_defaults_of_the_rivals_are_the_papers():
  assert {kind().local_steps for kind in _RIVALS} == {100}
  assert algorithms.FedPaqConfig().quantization_levels == 3
  assert algorithms.FedPaqConfig().code == 'fixed_width'
  assert algorithms.FedComConfig().server_factor == 10.0
  assert {kind.DEFAULT_HORIZON for kind in _RIVALS} == {2000}


def test_clients_move_between_queries_in_the_local_methods_alone():
  moving = {
      kind for kind in (*_RIVALS, algorithms.CealConfig) if kind.QUERIES_MOVE
  }
  assert moving == {
      algorithms.FedAvgConfig, algorithms.FedPaqConfig, algorithms.FedComConfig
  }


def test_ceal_has_columns_of_its_own():
  own = set(algorithms.CealConfig().extra_columns)
  assert not algorithms.FedAvgConfig().extra_columns
  assert {'epoch', 'stage', 'stepped', 'threshold', 'rounding_norm'} <= own


_ALL = (
  *algorithms.TRAINING,
  *algorithms.DECAY,
  *algorithms.MESSAGES,
  *algorithms.CEAL,
  *records.REGRET_COLUMNS,
  *records.EVALUATION_COLUMNS,
  *records.MACHINE_COLUMNS,
)


def test_each_name_stands_for_one_column():
  assert len(set(_ALL)) == len(_ALL)


@pytest.mark.parametrize('name', _ALL)
def test_records_describe_each_column(name):
  assert name in records.__doc__
