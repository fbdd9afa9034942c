"""Flags are the settings, and whatever is wrong with them is said."""

import dataclasses

import pytest

from baselines import settings
from baselines.algorithms import registry
from baselines.experiment import command
from baselines.experiment import config
from baselines.experiment import flags


def _parse(*arguments):
  return flags.parse_experiment(arguments, 'A command.', config.OutputConfig)


def test_no_flags_give_the_defaults():
  parsed = _parse()
  assert parsed.config == config.ExperimentConfig()
  assert parsed.extra[config.OutputConfig] == config.OutputConfig()
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
  assert not parsed.extra[config.OutputConfig].tensorboard
  assert 'rounds' in parsed.given and 'batch_size' not in parsed.given


def test_flagfile_is_read_and_later_flags_win(tmp_path):
  preset = tmp_path / 'a.flags'
  preset.write_text('# comment\n--rounds=7\n--batch_size=3\n')
  parsed = _parse(f'--flagfile={preset}', '--rounds=8')
  assert (parsed.config.run.rounds, parsed.config.run.batch_size) == (8, 3)


@pytest.mark.parametrize('argument, message', [
    ('--no_such_flag', "Unknown command line flag 'no_such_flag'"),
    ('--round=3', 'Did you mean: rounds'),
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
    ('--algorithm=fedavg', "algorithm must be one of local_update; found"),
])
def test_refused(argument, message):
  with pytest.raises(command.InputError, match=message):
    _parse(argument)


def test_flag_of_another_algorithm_is_refused(monkeypatch):
  @dataclasses.dataclass(frozen=True)
  class Other:
    levels: int = settings.setting(4, 'Levels.')

  entry = registry.AlgorithmEntry(Other, 'a:b')
  monkeypatch.setitem(registry.ALGORITHMS, 'other', entry)
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
  components = [*config.ExperimentConfig().components.values()]
  for component in [*components, config.OutputConfig()]:
    for field in dataclasses.fields(component):
      assert f'--{field.name}' in headings
  assert '--theta (default: 1:10)' in lines
  text = ' '.join(' '.join(lines).split())
  assert 'One of: float32, float64.' in text
  assert 'by default 0.99.' in text
  assert max(map(len, lines)) <= 80
