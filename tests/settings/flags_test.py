"""Flags are the settings, and whatever is wrong with them is said."""

import dataclasses

import pytest

from baselines import command
from baselines.settings import algorithms
from baselines.settings import commands
from baselines.settings import experiment
from baselines.settings import flags
from baselines.settings import schema


def _parse(*arguments):
  return flags.parse_experiment(
      arguments, 'A command.', commands.OutputConfig
  )


def test_no_flags_give_the_defaults():
  parsed = _parse()
  assert parsed.config == experiment.ExperimentConfig()
  own = parsed.extra[commands.OutputConfig]
  assert own == commands.OutputConfig()
  assert not parsed.given


def test_every_setting_is_a_flag():
  parsed = _parse(
      '--task=digits', '--model', 'logistic', '--theta=0.5,0,2',
      '--client_learning_rate=0', '--server_optimizer=yogi',
      '--noyogi_bias_correction', '--rounds=7', '--jit=off',
      '--tensorboard=false', '--algorithm=local_update',
  )
  assert parsed.config.task.model == 'logistic'
  assert parsed.config.algorithm.theta == '0.5,0,2'
  assert parsed.config.server_optimizer.yogi_bias_correction is False
  assert parsed.config.run.rounds == 7
  assert parsed.config.execution.jit == 'off'
  assert not parsed.extra[commands.OutputConfig].tensorboard
  assert 'rounds' in parsed.given and 'batch_size' not in parsed.given


def test_flagfile_is_read_and_later_flags_win(tmp_path):
  preset = tmp_path / 'a.flags'
  preset.write_text('# comment\n--rounds=7\n--batch_size=3\n')
  parsed = _parse(f'--flagfile={preset}', '--rounds=8')
  assert (parsed.config.run.rounds, parsed.config.run.batch_size) == (8, 3)


@pytest.mark.parametrize('argument, message', [
    ('--no_such_flag', "Unknown setting 'no_such_flag'"),
    ('--undefok=no_such_flag', 'undefok is no flag here'),
    ('--round=3', 'Did you mean rounds'),
    ('--sweep_seeds=1:2', 'sweep_seeds is a flag of localupdate-sweep'),
    ('--preset=paper1_fig2a', 'flag of localupdate-sweep, as are all presets'),
    ('--data_dir=x', "ignored: .* Those of digits are embedded"),
    ('--rounds=many', 'rounds'),
    ('--rounds', 'Missing value for flag --rounds'),
    ('--flagfile=/no/such/file', '/no/such/file'),
    ('stray', "'stray'"),
    ('--task=digitz', "found 'digitz'"),
    ('--theta=1:0', 'theta'),
    ('--theta=', 'theta'),
    ('--theta=0,0', 'theta'),
    ('--client_learning_rate=-1', 'client_learning_rate must be at least 0'),
    ('--client_learning_rate=nan', 'client_learning_rate must be finite'),
    ('--batch_size=0', 'batch_size must be at least 1'),
    ('--server_optimizer=adamw', "found 'adamw'"),
    ('--yogi_epsilon=0.1', 'yogi_epsilon .* would be ignored'),
    ('--algorithm=fedavg', "algorithm must be one of local_update, .*; found"),
])
def test_refused(argument, message):
  with pytest.raises(command.InputError, match=message):
    _parse(argument)


def test_flag_of_another_algorithm_is_refused(monkeypatch):
  @dataclasses.dataclass(frozen=True)
  class Other:
    levels: int = schema.setting(4, 'Levels.')

  entry = algorithms.AlgorithmEntry(Other, 'a:b')
  monkeypatch.setitem(algorithms.ALGORITHMS, 'other', entry)
  with pytest.raises(
      command.InputError,
      match="levels would be ignored: algorithm is 'local_update'",
  ):
    _parse('--levels=3')


@pytest.mark.parametrize('argument', ['--help', '-h'])
def test_help_names_every_flag_with_default_and_choices(argument):
  with pytest.raises(command.HelpRequested) as caught:
    _parse(argument)
  lines = str(caught.value).splitlines()
  headings = [line.split(' ')[0] for line in lines]
  components = [*experiment.ExperimentConfig().components.values()]
  for component in [*components, commands.OutputConfig()]:
    for field in dataclasses.fields(component):
      assert f'--{field.name}' in headings
  assert '--theta (default: 1:10)' in lines
  text = ' '.join(' '.join(lines).split())
  assert 'One of: float32, float64.' in text
  assert 'by default 0.99.' in text
  assert max(map(len, lines)) <= 80


@pytest.mark.parametrize('algorithm', algorithms.ALGORITHMS)
def test_every_algorithm_is_chosen_by_its_name(algorithm):
  parsed = _parse(f'--algorithm={algorithm}', '--task=scaled_regression')
  entry = algorithms.ALGORITHMS[algorithm]
  assert type(parsed.config.algorithm) is entry.config_type
  for part in (parsed.config.server_optimizer, parsed.config.rate):
    assert (part is not None) == entry.has_server_optimizer


@pytest.mark.parametrize('algorithm, argument', [
    ('ceal', '--server_learning_rate=0.1'),
    ('ceal', '--server_optimizer=sgd'),
    ('ceal', '--client_learning_rate=0.1'),
    ('ceal', '--theta=1:2'),
    ('ceal', '--local_steps=3'),
    ('ceal', '--uplink_quantizer=none'),
    ('minibatch_sgd', '--noise_scale=1'),
    ('minibatch_sgd', '--yogi_epsilon=0.1'),
    ('fed_avg', '--quantization_levels=3'),
    ('fed_avg', '--loss_before_training=full'),
    ('fed_paq', '--server_factor=2'),
    ('fed_com', '--noclip'),
    ('ceal', '--decay_rule=canonical'),
    ('k_maml', '--theta=1:2'),
    ('local_update', '--num_epochs=2'),
    ('local_update', '--horizon=100'),
    ('local_update', '--step_size=0.1'),
    ('local_update', '--regret_every=1'),
    ('local_update', '--code=signed_unary'),
])
def test_flag_of_another_algorithm_is_refused_whoever_has_it(
    algorithm, argument
):
  name = argument.lstrip('-').partition('=')[0].replace('noclip', 'clip')
  with pytest.raises(
      command.InputError,
      match=f"{name} would be ignored: algorithm is '{algorithm}'",
  ):
    _parse(f'--algorithm={algorithm}', argument)


@pytest.mark.parametrize(
    'algorithm', ['ceal', 'minibatch_sgd', 'fed_avg', 'fed_paq', 'fed_com']
)
def test_rounds_are_refused_where_a_horizon_ends_the_run(algorithm):
  with pytest.raises(
      command.InputError, match=f'rounds would be ignored: {algorithm} .* 7'
  ):
    _parse(f'--algorithm={algorithm}', '--rounds=7')


@pytest.mark.parametrize('arguments, message', [
    (['--algorithm=ceal', '--code=fixed_width'], 'code must be one of'),
    (['--algorithm=ceal', '--uplink_resolution=1'], 'uplink_resolution must'),
    (['--algorithm=ceal', '--noise_scale=0'], 'noise_scale must be greater'),
    (['--algorithm=fed_paq', '--quantization_levels=0'],
     'quantization_levels must be at least 1'),
    (['--algorithm=fed_avg', '--regret_every=2'], 'regret_every would be'),
    (['--uplink_quantizer=qsgd'], 'quantizer_resolution must be given'),
    (['--quantizer_resolution=2'], 'quantizer_resolution would be ignored'),
    (['--preset=no_such'], 'preset must be one of .*quickstart'),
])
def test_settings_of_paper_2_refused(arguments, message):
  with pytest.raises(command.InputError, match=message):
    _parse(*arguments)


def test_flags_of_a_preset_take_its_place_and_later_ones_win():
  parsed = _parse(
      '--task=scaled_regression', '--horizon=7',
      '--preset=paper2_synthetic_ceal', '--grid=vector',
  )
  ceal = parsed.config.algorithm
  assert (ceal.horizon, ceal.step_size, ceal.grid) == (7, 2.0, 'vector')
  assert {'noise_scale', 'horizon', 'algorithm'} <= parsed.given.keys()


def test_help_tells_a_flag_of_several_algorithms_once_if_it_is_the_same():
  with pytest.raises(command.HelpRequested) as caught:
    _parse('--help')
  lines = str(caught.value).splitlines()
  assert lines.count('--horizon (default: 2000)') == 1
  assert lines.count('--local_steps (default: 100)') == 1
  # CEAL's own step size has another default, and another text.
  assert lines.count('--step_size (default: 0.1)') == 1
  assert lines.count('--step_size') == 1
  assert '--preset=NAME' in lines
