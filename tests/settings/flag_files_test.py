"""Presets are named, and stand for their flags."""

import pathlib

import pytest

from baselines.settings import flags as flags_lib


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
  monkeypatch.setattr(flags_lib, '_FOLDER', tmp_path)


def test_names_are_those_of_the_files(folder):
  assert flags_lib.names() == ['base', 'other', 'third']


def test_shipped_presets_are_found():
  shipped = pathlib.Path(flags_lib.__file__).parents[1] / 'presets'
  assert flags_lib.names() == sorted(p.stem for p in shipped.glob('*.flags'))
  assert {'quickstart', 'paper2_mnist', 'paper2_synthetic'} <= set(
      flags_lib.names()
  )


def test_flags_take_the_place_of_the_preset(folder):
  found = flags_lib.expand(['--model=cnn', '--preset=base', '--rounds=9'])
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
    flags_lib.expand([*typed, file])
  assert flags_lib.expand([file, *typed])[-len(typed):] == typed
  # The same in both, or typed behind it once more.
  assert flags_lib.expand(['--rounds=3', file]).count('--rounds=3') == 2
  assert flags_lib.expand([*typed, file, '--rounds=7'])[-1] == '--rounds=7'


def test_files_override_files(folder, tmp_path):
  (tmp_path / 'a.txt').write_text('--rounds=8\n')
  found = flags_lib.expand([f'--flagfile={tmp_path}/a.txt', '--preset=other'])
  assert found[-1] == '--rounds=4'


def test_presets_may_hold_presets(folder):
  assert flags_lib.expand(['-preset=third']) == [
      '--dtype=float64', '--task=digits', '--rounds=3', '--rounds=4',
      '--output_dir=runs/a b',
  ]


def test_other_arguments_stay_as_they_are(folder):
  arguments = ['--presets=base', '--flagfiles=x', 'preset=base', '']
  assert flags_lib.expand(arguments) == arguments


@pytest.mark.parametrize(
    'argument', ['--preset=bases', '--preset=', '--preset', '--preset=../base']
)
def test_unknown_preset_is_refused_with_those_there_are(folder, argument):
  with pytest.raises(
      ValueError, match='preset must be one of base, other, third; found'
  ):
    flags_lib.expand([argument])


@pytest.mark.parametrize('flag', ['--flagfile=', '-flagfile=', '--flagfile'])
def test_flag_files_may_hold_presets_and_files(folder, tmp_path, flag):
  (tmp_path / 'a.txt').write_text('// C.\n--preset=base\n--rounds=5\n')
  (tmp_path / 'b.txt').write_text(f'--flagfile={tmp_path}/a.txt\n--jit=on\n')
  path = str(tmp_path / 'b.txt')
  arguments = [flag + path] if '=' in flag else [flag, path]
  assert flags_lib.expand(['--x=1', *arguments, '--y=2']) == [
      '--x=1', '--task=digits', '--rounds=3', '--rounds=5', '--jit=on', '--y=2'
  ]


def test_file_that_holds_itself_is_refused(folder, tmp_path):
  (tmp_path / 'a.txt').write_text(f'--flagfile={tmp_path}/b.txt\n')
  (tmp_path / 'b.txt').write_text(f'--flagfile={tmp_path}/a.txt\n')
  with pytest.raises(ValueError, match='must not hold itself, found .*a.txt'):
    flags_lib.expand([f'--flagfile={tmp_path}/a.txt'])
  twice = tmp_path / 'c.txt'
  twice.write_text('--rounds=1\n')
  assert len(flags_lib.expand([f'--flagfile={twice}'] * 2)) == 2


@pytest.mark.parametrize('name', ['', 'missing.txt', '.', 'binary'])
def test_file_that_cannot_be_read_is_refused(
    folder, tmp_path, monkeypatch, name
):
  monkeypatch.chdir(tmp_path)
  (tmp_path / 'binary').write_bytes(b'\xff\xfe\x00')
  with pytest.raises(ValueError, match='flagfile must be a file that can be'):
    flags_lib.expand([f'--flagfile={name}'])


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
      flags_lib.expand(arguments)
  for arguments in (
      ['--preset=base', '--preset=part'],
      ['--task=x', '--preset=part'],
      ['-task', 'x', f'--flagfile={mine}'],
      ['--preset=whole'],
  ):
    assert '--algorithm=b' in flags_lib.expand(arguments)
  assert flags_lib.expand(['--preset=part'], ['--task=x']) == [
      '--algorithm=b'
  ]


def test_shipped_presets_of_papers_have_a_task_or_are_parts():
  parts = 0
  for name in flags_lib.names():
    if name.startswith('paper'):
      try:
        flags = flags_lib.expand([f'--preset={name}'])
      except ValueError as error:
        assert 'must come after task' in str(error)
        parts += 1
      else:
        assert any(flag.startswith('--task=') for flag in flags)
  assert parts == 27


def test_typed_flags():
  found = flags_lib.typed(
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
    flags_lib.expand([f'--flagfile={tmp_path}/a.txt'])
