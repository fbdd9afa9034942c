"""Sizes, places and names of files, as CONTRIBUTING.md states them."""

import ast
import re

import pytest

from tests.structure import sources

_MODULE_LINES = 300
_SCRIPT_LINES = 40
_MAIN_LINES = 80
_FUNCTION_LINES = 40
_BUILDER_LINES = 60

# Modules without a test file of their own, and the file that covers them.
_TESTED_BY = {
    'tff_localupdate.local_update.process_wrapping':
        'tests/tff_localupdate/local_update/decay_test.py',
    'tff_localupdate.execution.local_function':
        'tests/tff_localupdate/execution/context_test.py',
    'tff_localupdate.execution.round_graph':
        'tests/tff_localupdate/execution/program_test.py',
    'tff_localupdate.execution.secure_sums':
        'tests/tff_localupdate/execution/context_test.py',
}

# Folders of tests that mirror no package.
_OTHER_TESTS = ('benchmarks', 'contracts', 'gpu', 'helpers', 'papers',
                'scripts', 'structure')

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


def _tests_of_packages():
  for package in sources.PACKAGES:
    yield from sorted((sources.ROOT / 'tests' / package).rglob('*_test.py'))


def _code_lines(function):
  """Counts the lines of a body that hold code: no docstring, no comment."""
  lines = set()
  for statement in function.body:
    if isinstance(statement, ast.Expr) and isinstance(
        statement.value, ast.Constant
    ):
      continue
    for node in ast.walk(statement):
      if hasattr(node, 'lineno'):
        lines.update((node.lineno, node.end_lineno))
  return len(lines)


def test_modules_are_short():
  wrong = []
  for path in sources.find_files(*sources.PACKAGES, 'scripts'):
    lines = path.read_text(encoding='utf-8').count('\n')
    limit = _MAIN_LINES if path.name == 'main.py' else _MODULE_LINES
    if lines > limit:
      wrong.append(f'{_relative(path)} has {lines} lines.')
  assert not wrong


def test_functions_are_short():
  wrong = []
  for path in sources.find_files(*sources.PACKAGES, 'scripts'):
    for node in ast.walk(sources.parse(path)):
      if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        builds = node.name.lstrip('_').startswith('build')
        limit = _BUILDER_LINES if builds else _FUNCTION_LINES
        if _code_lines(node) > limit:
          wrong.append(f'{_relative(path)}:{node.lineno} {node.name}')
  assert not wrong


@pytest.mark.parametrize('path', _scripts(), ids=_relative)
def test_script_is_short_and_strict(path):
  lines = path.read_text(encoding='utf-8').splitlines()
  assert len(lines) <= _SCRIPT_LINES
  assert 'set -euo pipefail' in lines
  is_sourced = path.name == 'environment.sh'
  assert lines[0].startswith('#!/usr/bin/env bash') != is_sourced
  assert bool(path.stat().st_mode & 0o111) != is_sourced


def test_every_module_has_its_test():
  modules = sources.find_modules(*sources.PACKAGES)
  wrong = []
  for name, path in modules.items():
    mirror = f'tests/{_relative(path)[:-len(".py")]}_test.py'
    has_mirror = (sources.ROOT / mirror).exists()
    other = sources.ROOT / _TESTED_BY.get(name, mirror)
    if path.name != '__init__.py' and not other.exists():
      wrong.append(f'{name} is not tested by {_relative(other)}.')
    if has_mirror and name in _TESTED_BY:
      wrong.append(f'{name} has a test and needs no entry in _TESTED_BY.')
  assert not wrong, '\n'.join(wrong)
  assert set(_TESTED_BY) <= set(modules)


def test_every_test_lies_where_its_package_lies():
  for path in _tests_of_packages():
    mirrored = path.parent.relative_to(sources.ROOT / 'tests')
    assert (sources.ROOT / mirrored).is_dir(), _relative(path)
  allowed = {*sources.PACKAGES, *_OTHER_TESTS, '__pycache__'}
  for folder in (sources.ROOT / 'tests').iterdir():
    assert not folder.is_dir() or folder.name in allowed, folder.name


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
