"""Places and names of files, as CONTRIBUTING.md states them."""

import ast
import re

import pytest

from tests.structure import sources

# Names that say nothing of what is inside.
_VAGUE = re.compile(r'(.*_)?(utils?|common|helpers?|misc)')

# Split, so that this file does not hold what it looks for.
_FORBIDDEN = (
    '/ho' 'me/', '/ro' 'ot/', '/wo' 'rk/', '/tm' 'p/w/', '/Us' 'ers/',
    'py' 'pi.org', 'python' 'hosted.org', '--index' '-url',
)


def _relative(path):
  return path.relative_to(sources.ROOT).as_posix()


def _scripts():
  return [*sorted((sources.ROOT / 'scripts').glob('*.sh')),
          sources.ROOT / '.ci' / 'run']


def _text_files():
  patterns = ('*.py', '*.sh', '*.md', '*.txt', '*.toml', '*.flags', 'BUILD')
  for pattern in patterns:
    yield from sources.ROOT.glob(pattern)
    for folder in sources.FOLDERS:
      yield from (sources.ROOT / folder).rglob(pattern)
  yield from _scripts()
  yield sources.ROOT / '.gitignore'


@pytest.mark.parametrize('path', _scripts(), ids=_relative)
def test_script_is_strict(path):
  lines = path.read_text(encoding='utf-8').splitlines()
  assert 'set -euo pipefail' in lines
  is_sourced = path.name == 'environment.sh'
  assert lines[0].startswith('#!/usr/bin/env bash') != is_sourced
  assert bool(path.stat().st_mode & 0o111) != is_sourced


def test_every_folder_is_a_package():
  for path in sources.find_files(*sources.PACKAGES, 'tests'):
    assert (path.parent / '__init__.py').exists(), _relative(path)


def test_setup_names_every_package():
  text = (sources.ROOT / 'setup.py').read_text(encoding='utf-8')
  listed = re.search(r'packages=\[(.*?)\]', text, re.DOTALL).group(1)
  folders = {
      _relative(path.parent).replace('/', '.')
      for path in sources.find_files(*sources.PACKAGES)
      if path.name == '__init__.py'
  }
  assert set(re.findall(r"'([\w.]+)'", listed)) == folders


def test_console_scripts_exist():
  text = (sources.ROOT / 'setup.py').read_text(encoding='utf-8')
  commands = re.findall(r"'localupdate-\w+ = ([\w.]+):(\w+)'", text)
  assert len(commands) == 3
  for module, function in commands:
    tree = sources.parse(sources.ROOT / f'{module.replace(".", "/")}.py')
    assert function in {
        n.name for n in tree.body if isinstance(n, ast.FunctionDef)
    }


def test_names_say_what_is_inside():
  for path in sources.find_files(*sources.PACKAGES):
    for part in path.relative_to(sources.ROOT).with_suffix('').parts:
      assert not _VAGUE.fullmatch(part), _relative(path)


def test_no_address_and_no_path_of_one_machine():
  for path in _text_files():
    text = path.read_text(encoding='utf-8')
    for forbidden in _FORBIDDEN:
      assert forbidden not in text, f'{_relative(path)} has {forbidden}'


def test_license_is_apache():
  text = (sources.ROOT / 'LICENSE').read_text(encoding='utf-8')
  assert 'Apache License' in text and 'END OF TERMS AND CONDITIONS' in text


def test_build_file_names_what_there_is():
  tree = ast.parse((sources.ROOT / 'BUILD').read_text(encoding='utf-8'))
  texts = [
      node.value
      for node in ast.walk(tree)
      if isinstance(node, ast.Constant) and isinstance(node.value, str)
  ]
  paths = [t for t in texts if re.fullmatch(r'[\w.*/-]+\.\w+|[\w/]+/\*', t)]
  assert 'tff_localupdate/**/*.py' in paths and 'README.md' in paths
  for path in paths:
    assert next(sources.ROOT.glob(path), None), path
