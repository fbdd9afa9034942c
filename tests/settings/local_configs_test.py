"""Settings of LocalUpdate and its relatives: what is read, what is refused."""

import pytest

from baselines.settings import algorithms

LocalUpdate = algorithms.LocalUpdateConfig


def test_defaults_are_the_papers_algorithm():
  config = LocalUpdate()
  assert config.step_options == {
      'optimizer': 'sgd', 'proximal_strength': 0.0, 'step_factors': None
  }
  assert config.num_steps == 10


def test_loss_before_training_is_full_where_rates_decay_by_it():
  assert LocalUpdate().default_loss(decays=False) == 'drawn'
  assert LocalUpdate().default_loss(decays=True) == 'full'
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
  config = LocalUpdate(theta='1:3', step_factors='1,0.5,0')
  assert config.step_options['step_factors'] == (1.0, 0.5, 0.0)


@pytest.mark.parametrize('kind', [
    LocalUpdate, algorithms.EpochsConfig, algorithms.MamlConfig
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


@pytest.mark.parametrize(
    'settings, message',
    [
        ({'theta': '1:0'}, 'theta'),
        ({'client_learning_rate': -1.0}, 'client_learning_rate must be at le'),
        ({'client_optimizer': 'adam'}, 'client_optimizer must be one of'),
        ({'client_momentum': 0.5}, 'client_momentum is a setting of momentum'),
        ({'client_epsilon': 0.1}, 'client_epsilon is a setting of adagrad'),
        (
            {'client_optimizer': 'momentum', 'client_momentum': 1.0},
            'client_momentum must be less than 1',
        ),
        ({'proximal_strength': -0.1}, 'proximal_strength must be at least 0'),
        ({'theta': '1:3', 'step_factors': '1,1'}, 'step_factors must be 3'),
        ({'theta': '1:2', 'step_factors': '1,-1'}, 'step_factors must be 2'),
        ({'theta': '1:2', 'step_factors': '1,x'}, "negative.*found '1,x'"),
        ({'quantizer_resolution': 0.1}, 'quantizer_resolution would be ign'),
        ({'quantizer_code': 'run_length'}, 'quantizer_code would be ignored'),
        ({'uplink_quantizer': 'qsgd'}, 'quantizer_resolution must be given'),
        (
            {'uplink_quantizer': 'qsgd', 'quantizer_resolution': 1.5},
            'whole number of levels',
        ),
        (
            {
                'uplink_quantizer': 'grid_vector',
                'quantizer_resolution': 0.1,
                'quantizer_code': 'fixed_width',
            },
            "must not be 'fixed_width' with a grid",
        ),
    ],
)
def test_wrong_settings(settings, message):
  with pytest.raises(ValueError, match=message):
    LocalUpdate(**settings)


def test_wrong_settings_of_relatives():
  with pytest.raises(ValueError, match="must not be 'full' with epochs"):
    algorithms.EpochsConfig(loss_before_training='full')
  with pytest.raises(ValueError, match='num_epochs must be at least 1'):
    algorithms.EpochsConfig(num_epochs=0)
  with pytest.raises(ValueError, match='num_steps must be at least 1'):
    algorithms.MamlConfig(num_steps=0)
  with pytest.raises(TypeError):
    algorithms.MamlConfig(proximal_strength=0.1)


@pytest.mark.parametrize('theta, canonical, num_steps', [
    ('1:10', '1:10', 10),
    ('1,1,1', '1:3', 3),
    ('k4', 'k4', 4),
    ('0.5,0,2,0', '0.5,0,2', 3),
])
def test_theta_is_kept_in_one_form(theta, canonical, num_steps):
  local_update = LocalUpdate(theta=theta)
  assert local_update.theta == canonical
  assert local_update.num_steps == num_steps


@pytest.mark.parametrize('theta', ['1:0', '', '0,0', '-1', 'nan', '2:5'])
def test_theta_refused_by_name(theta):
  with pytest.raises(ValueError, match='theta'):
    LocalUpdate(theta=theta)


def test_client_learning_rate_zero_is_legal():
  assert LocalUpdate(client_learning_rate=0).num_steps == 10


@pytest.mark.parametrize('rate', [-0.1, float('nan')])
def test_rates_refused(rate):
  with pytest.raises(ValueError, match='client_learning_rate'):
    LocalUpdate(client_learning_rate=rate)
