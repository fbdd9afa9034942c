"""Files that could not be written are refused before the work."""

import argparse
import os
import pathlib

import pytest

from baselines.figures import outputs


def _parse(*arguments):
  parser = argparse.ArgumentParser(exit_on_error=False)
  outputs.add_figure_option(parser)
  outputs.add_table_option(parser)
  return parser.parse_args(arguments)


@pytest.mark.parametrize('name', ['a.png', 'b/c.pdf', 'd.SVG'])
def test_known_endings(name):
  options = _parse('--output', name)
  assert options.output == pathlib.Path(name) and options.csv is None


@pytest.mark.parametrize('arguments, message', [
    (('--output', 'a.xyz'), r"must end in one of .png, .pdf, .svg, found 'a.x"),
    (('--output', '.png'), 'must end in one of'),
    (('--output', 'a.png', '--csv', 'a.png'), "must end in one of .csv, found"),
])
def test_unknown_endings_are_refused(arguments, message):
  with pytest.raises(argparse.ArgumentError, match=message):
    _parse(*arguments)


def test_text_is_markdown():
  parser = argparse.ArgumentParser(exit_on_error=False)
  outputs.add_text_option(parser)
  path = parser.parse_args(['--output', 'b/a.md']).output
  assert path == pathlib.Path('b/a.md')
  with pytest.raises(argparse.ArgumentError, match='must end in one of .md,'):
    parser.parse_args(['--output', 'a.png'])


def test_home_is_expanded(monkeypatch, tmp_path):
  monkeypatch.setenv('HOME', str(tmp_path))
  assert _parse('--output', '~/a.png').output == tmp_path / 'a.png'


def test_new_folders_are_accepted_and_not_made(tmp_path):
  options = _parse('--output', str(tmp_path / 'b' / 'c' / 'a.png'))
  outputs.check_outputs(options)
  assert not list(tmp_path.iterdir())


def test_folder_behind_a_file_is_refused(tmp_path):
  # One that may be executed, as a folder may be entered.
  (tmp_path / 'file').touch(mode=0o755)
  target = str(tmp_path / 'file' / 'b' / 'a')
  with pytest.raises(ValueError, match='output must be in a folder'):
    outputs.check_outputs(_parse('--output', f'{target}.png'))
  with pytest.raises(ValueError, match='csv must be in a folder'):
    outputs.check_outputs(
        _parse('--output', str(tmp_path / 'a.png'), '--csv', f'{target}.csv')
    )


def test_folder_without_permission_is_refused(tmp_path, monkeypatch):
  monkeypatch.setattr(os, 'access', lambda path, mode: path != tmp_path)
  with pytest.raises(ValueError, match='that can be written to'):
    outputs.check_outputs(_parse('--output', str(tmp_path / 'b' / 'a.png')))


def test_folder_in_place_of_a_file_is_refused(tmp_path):
  (tmp_path / 'a.png').mkdir()
  with pytest.raises(ValueError, match='must be a file, found the folder'):
    outputs.check_outputs(_parse('--output', str(tmp_path / 'a.png')))


def test_figure_without_lines_is_told_beside_the_names_of_files(capsys):
  outputs.say_nothing_drawn(pathlib.Path('a.png'))
  said = capsys.readouterr()
  assert not said.out and said.err.startswith(
      'localupdate-figures: a.png has no lines: '
  )
  assert said.err.count('\n') == 1
