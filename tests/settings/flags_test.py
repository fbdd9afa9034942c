"""Flags, files of flags and keywords say the same, and are refused alike."""

import dataclasses
import pathlib

import numpy as np
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
    ('--undefok=no_such_flag', 'undefok is no flag here'),
    ('--sweep_seeds=1:2', 'sweep_seeds is a flag of localupdate-sweep'),
    ('--preset=paper1_fig2a', 'flag of localupdate-sweep, as are all presets'),
    ('--preset=no_such', 'preset must be one of .*quickstart'),
    ('--rounds=many', 'rounds'),
    ('--rounds', 'Missing value for flag --rounds'),
    ('--flagfile=/no/such/file', '/no/such/file'),
    ('stray', "flags must start with --, found the argument 'stray'"),
])
def test_what_is_no_flag_is_refused(argument, message):
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


@pytest.mark.parametrize('algorithm', algorithms.ALGORITHMS)
def test_every_algorithm_is_chosen_by_its_name(algorithm):
  parsed = _parse(f'--algorithm={algorithm}', '--task=scaled_regression')
  entry = algorithms.ALGORITHMS[algorithm]
  assert type(parsed.config.algorithm) is entry.config_type
  for part in (parsed.config.server_optimizer, parsed.config.rate):
    assert (part is not None) == entry.has_server_optimizer


@pytest.mark.parametrize('algorithm, setting, hint', [
    ('fed_avg', 'client_learning_rate', ', whose step_size stands for it'),
    ('minibatch_sgd', 'server_learning_rate', ', whose step_size stands for'),
    ('minibatch_sgd', 'client_learning_rate', '[.]$'),
    ('fed_avg', 'theta', '[.]$'),
])
def test_tied_rates_are_told_by_what_stands_for_them(algorithm, setting, hint):
  value = '1:2' if setting == 'theta' else '0.1'
  with pytest.raises(
      command.InputError, match=f"ignored: algorithm is '{algorithm}'{hint}"
  ):
    _parse(f'--algorithm={algorithm}', f'--{setting}={value}')


def test_flags_of_a_preset_take_its_place_and_later_ones_win():
  parsed = _parse(
      '--task=scaled_regression', '--horizon=7',
      '--preset=paper2_synthetic_ceal', '--grid=vector',
  )
  ceal = parsed.config.algorithm
  assert parsed.config.run.horizon == 7
  assert (ceal.step_size, ceal.grid) == (2.0, 'vector')
  assert {'noise_scale', 'horizon', 'algorithm'} <= parsed.given.keys()


def test_help_tells_a_flag_of_several_algorithms_once_if_it_is_the_same():
  with pytest.raises(command.HelpRequested) as caught:
    _parse('--help')
  lines = str(caught.value).splitlines()
  assert lines.count('--horizon') == 1
  assert lines.count('--local_steps (default: 100)') == 1
  # CEAL's own step size has another default, and another text.
  assert lines.count('--step_size (default: 0.1)') == 1
  assert lines.count('--step_size') == 1
  assert '--preset=NAME' in lines


def test_keywords_become_flags_behind_their_presets():
  own = commands.OutputConfig
  found = flags.arguments_of(
      {'rounds': np.int64(3), 'client_learning_rate': np.float32(0.5),
       'tensorboard': False, 'preset': ['family_fomaml', 'family_k_maml'],
       'model': None, 'output_dir': pathlib.Path('a')}, own,
  )
  assert found == [
      '--preset=family_fomaml', '--preset=family_k_maml', '--rounds=3',
      '--client_learning_rate=0.5', '--tensorboard=false', '--output_dir=a',
  ]
  assert flags.arguments_of({'flagfile': 'x'}) == ['--flagfile=x']
  with pytest.raises(command.InputError, match="Unknown setting 'dry_run'"):
    flags.arguments_of({'dry_run': True}, own, refused=('dry_run',))


@pytest.fixture(name='folder')
def _folder(tmp_path, monkeypatch):
  files = {
      'base': '# A comment.\n--task=digits\n\n  --rounds=3\n# --batch_size=1\n',
      'other': '--preset=base\n--rounds=4\n',
      'third': '--dtype=float64\n--preset=other\n--output_dir=runs/a b\n',
  }
  for name, text in files.items():
    (tmp_path / f'{name}.flags').write_text(text)
  (tmp_path / 'BUILD').touch()
  monkeypatch.setattr(flags, '_FOLDER', tmp_path)


def test_names_are_those_of_the_files(folder):
  assert flags.names() == ['base', 'other', 'third']


def test_shipped_presets_are_found():
  shipped = pathlib.Path(flags.__file__).parents[1] / 'presets'
  assert flags.names() == sorted(p.stem for p in shipped.glob('*.flags'))
  assert {'quickstart', 'paper2_mnist', 'paper2_synthetic'} <= set(
      flags.names()
  )


def test_flags_take_the_place_of_the_preset(folder):
  found = flags.expand(['--model=cnn', '--preset=base', '--rounds=9'])
  assert found == ['--model=cnn', '--task=digits', '--rounds=3', '--rounds=9']


@pytest.mark.parametrize('typed', [['--rounds=5'], ['--rounds', '5']])
@pytest.mark.parametrize('kind', ['preset', 'flagfile'])
def test_what_was_typed_is_not_overridden_by_a_file(
    folder, tmp_path, typed, kind):
  name = 'base' if kind == 'preset' else f'{tmp_path}/base.flags'
  file = f'--{kind}={name}'
  with pytest.raises(
      ValueError, match=f'rounds would be ignored: {kind} .*base.* after it'
  ):
    flags.expand([*typed, file])
  assert flags.expand([file, *typed])[-len(typed):] == typed
  # The same in both, or typed behind it once more.
  assert flags.expand(['--rounds=3', file]).count('--rounds=3') == 2
  assert flags.expand([*typed, file, '--rounds=7'])[-1] == '--rounds=7'


def test_files_override_files(folder, tmp_path):
  (tmp_path / 'a.txt').write_text('--rounds=8\n')
  found = flags.expand([f'--flagfile={tmp_path}/a.txt', '--preset=other'])
  assert found[-1] == '--rounds=4'


def test_presets_may_hold_presets(folder):
  assert flags.expand(['-preset=third']) == [
      '--dtype=float64', '--task=digits', '--rounds=3', '--rounds=4',
      '--output_dir=runs/a b',
  ]


def test_other_arguments_stay_as_they_are(folder):
  arguments = ['--presets=base', '--flagfiles=x', 'preset=base', '']
  assert flags.expand(arguments) == arguments


@pytest.mark.parametrize(
    'argument', ['--preset=bases', '--preset=', '--preset', '--preset=../base']
)
def test_unknown_preset_is_refused_with_those_there_are(folder, argument):
  with pytest.raises(
      ValueError, match='preset must be one of base, other, third; found'
  ):
    flags.expand([argument])


@pytest.mark.parametrize('flag', ['--flagfile=', '-flagfile=', '--flagfile'])
def test_flag_files_may_hold_presets_and_files(folder, tmp_path, flag):
  (tmp_path / 'a.txt').write_text('// C.\n--preset=base\n--rounds=5\n')
  (tmp_path / 'b.txt').write_text(f'--flagfile={tmp_path}/a.txt\n--jit=on\n')
  path = str(tmp_path / 'b.txt')
  arguments = [flag + path] if '=' in flag else [flag, path]
  assert flags.expand(['--x=1', *arguments, '--y=2']) == [
      '--x=1', '--task=digits', '--rounds=3', '--rounds=5', '--jit=on', '--y=2'
  ]


def test_file_that_holds_itself_is_refused(folder, tmp_path):
  (tmp_path / 'a.txt').write_text(f'--flagfile={tmp_path}/b.txt\n')
  (tmp_path / 'b.txt').write_text(f'--flagfile={tmp_path}/a.txt\n')
  with pytest.raises(ValueError, match='must not hold itself, found .*a.txt'):
    flags.expand([f'--flagfile={tmp_path}/a.txt'])
  twice = tmp_path / 'c.txt'
  twice.write_text('--rounds=1\n')
  assert len(flags.expand([f'--flagfile={twice}'] * 2)) == 2


@pytest.mark.parametrize('name', ['', 'missing.txt', '.', 'binary'])
def test_file_that_cannot_be_read_is_refused(
    folder, tmp_path, monkeypatch, name
):
  monkeypatch.chdir(tmp_path)
  (tmp_path / 'binary').write_bytes(b'\xff\xfe\x00')
  with pytest.raises(ValueError, match='flagfile must be a file that can be'):
    flags.expand([f'--flagfile={name}'])


def test_part_of_a_preset_goes_after_a_task(folder, tmp_path):
  (tmp_path / 'part.flags').write_text('# Part of base: a.\n--algorithm=b\n')
  (tmp_path / 'whole.flags').write_text('--preset=part\n--task=digits\n')
  mine = tmp_path / 'mine' / 'flags.txt'
  mine.parent.mkdir()
  mine.write_text('--preset=part\n')
  message = 'preset part, a part of base, must come after task or after a pr'
  for arguments in (
      ['--rounds=1', '--preset=part'],
      ['--preset=part', '--preset=base'],
      [f'--flagfile={mine}'],
  ):
    with pytest.raises(ValueError, match=message):
      flags.expand(arguments)
  for arguments in (
      ['--preset=base', '--preset=part'],
      ['--task=x', '--preset=part'],
      ['-task', 'x', f'--flagfile={mine}'],
      ['--preset=whole'],
  ):
    assert '--algorithm=b' in flags.expand(arguments)
  assert flags.expand(['--preset=part'], ['--task=x']) == [
      '--algorithm=b'
  ]


def test_shipped_presets_of_papers_have_a_task_or_are_parts():
  parts = 0
  for name in flags.names():
    if name.startswith('paper'):
      try:
        expanded = flags.expand([f'--preset={name}'])
      except ValueError as error:
        assert 'must come after task' in str(error)
        parts += 1
      else:
        assert any(flag.startswith('--task=') for flag in expanded)
  assert parts == 27


def test_typed_flags():
  found = flags.typed(
      ['--a=1', '--preset=base', '--flagfile', 'x', '-b', '2', '--nod', '5']
  )
  assert [(flag.name, flag.text) for flag in found] == [
      ('a', '--a=1'), ('b', '-b'), ('nod', '--nod')
  ]


@pytest.mark.parametrize('line', [
    '--output_dir=runs/a # mine', '--output_dir="runs/a"', "--theta='1:10'"
])
def test_what_a_shell_would_take_off_is_refused(tmp_path, line):
  (tmp_path / 'a.txt').write_text(f'--rounds=3\n{line}\n')
  with pytest.raises(ValueError, match='comments on lines of their own'):
    flags.expand([f'--flagfile={tmp_path}/a.txt'])
