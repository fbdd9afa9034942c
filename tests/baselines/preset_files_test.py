"""Presets are named, and stand for their flags."""

import pathlib

import pytest

from baselines import preset_files


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
  monkeypatch.setattr(preset_files, '_FOLDER', tmp_path)


def test_names_are_those_of_the_files(folder):
  assert preset_files.names() == ['base', 'other', 'third']


def test_shipped_presets_are_found():
  shipped = pathlib.Path(preset_files.__file__).parent / 'presets'
  assert preset_files.names() == sorted(p.stem for p in shipped.glob('*.flags'))
  assert {'quickstart', 'paper2_mnist', 'paper2_synthetic'} <= set(
      preset_files.names()
  )


def test_flags_take_the_place_of_the_preset(folder):
  found = preset_files.expand(['--model=cnn', '--preset=base', '--rounds=9'])
  assert found == ['--model=cnn', '--task=digits', '--rounds=3', '--rounds=9']


def test_presets_may_hold_presets(folder):
  assert preset_files.expand(['-preset=third']) == [
      '--dtype=float64', '--task=digits', '--rounds=3', '--rounds=4',
      '--output_dir=runs/a b',
  ]


def test_other_arguments_stay_as_they_are(folder):
  arguments = ['--presets=base', '--flagfile=--preset=base', 'preset=base', '']
  assert preset_files.expand(arguments) == arguments


@pytest.mark.parametrize(
    'argument', ['--preset=bases', '--preset=', '--preset', '--preset=../base']
)
def test_unknown_preset_is_refused_with_those_there_are(folder, argument):
  with pytest.raises(
      ValueError, match='preset must be one of base, other, third; found'
  ):
    preset_files.expand([argument])
