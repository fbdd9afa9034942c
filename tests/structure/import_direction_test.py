"""Who may import whom, as data, checked on the syntax trees.

The direction is that of CONTRIBUTING.md: scripts, then
baselines.{training,sweeps,figures}, then
baselines.{algorithms,regret,settings,tasks}, then the library. Imports inside
functions count as well. Import paths that registries hold as text do not: a
registry names what others build.
"""

import subprocess
import sys

import pytest

from tests.structure import sources

# What each unit (a package or a module on its own) may import of this
# repository, besides itself. A name stands for all that is inside it. The
# table is that of the whole design, so it may be ahead of the tree.
_ALLOWED = {
    # The public surface: imports lazily what it offers.
    'tff_localupdate': (
        'tff_localupdate.ceal',
        'tff_localupdate.compression',
        'tff_localupdate.execution',
        'tff_localupdate.local_update',
        'tff_localupdate.server_optimizers',
        'tff_localupdate.theory',
        'tff_localupdate.theta',
    ),
    'tff_localupdate.arguments': (),
    'tff_localupdate.optimizer_settings': (),
    'tff_localupdate.theta': (),
    'tff_localupdate.models': ('tff_localupdate.arguments',),
    'tff_localupdate.server_optimizers': (
        'tff_localupdate.arguments',
        'tff_localupdate.optimizer_settings',
    ),
    'tff_localupdate.execution': (),
    'tff_localupdate.theory': (
        'tff_localupdate.arguments',
        'tff_localupdate.theta',
    ),
    'tff_localupdate.compression': ('tff_localupdate.arguments',),
    'tff_localupdate.local_update': (
        'tff_localupdate.arguments',
        'tff_localupdate.models',
        'tff_localupdate.optimizer_settings',
        'tff_localupdate.server_optimizers',
        'tff_localupdate.theta',
    ),
    'tff_localupdate.ceal': (
        'tff_localupdate.arguments',
        'tff_localupdate.compression',
        'tff_localupdate.models',
        'tff_localupdate.server_optimizers',
    ),
    'baselines': (),
    'baselines.files': (),
    'baselines.command': (),
    'baselines.tasks': (),
    'baselines.regret': ('baselines.files', 'baselines.tasks.registry'),
    'baselines.settings': (
        'baselines.command',
        'baselines.tasks.registry',
        'tff_localupdate.optimizer_settings',
        'tff_localupdate.theta',
    ),
    'baselines.algorithms': (
        'baselines.settings',
        'baselines.tasks.task',
        'tff_localupdate',
    ),
    'baselines.results': (
        'baselines.command',
        'baselines.files',
        'baselines.settings',
    ),
    'baselines.training': (
        'baselines.algorithms',
        'baselines.command',
        'baselines.files',
        'baselines.regret',
        'baselines.results',
        'baselines.settings',
        'baselines.tasks',
        'tff_localupdate.execution',
        'tff_localupdate.local_update.epoch_draws',
    ),
    'baselines.figures': (
        'baselines.command',
        'baselines.files',
        'baselines.results',
        'baselines.tasks.databases',
        'baselines.tasks.downloads',
        'baselines.tasks.registry',
        'tff_localupdate.theory',
        'tff_localupdate.theta',
    ),
    'baselines.sweeps': (
        'baselines.command',
        'baselines.figures',
        'baselines.files',
        'baselines.results',
        'baselines.training',
        'baselines.settings',
    ),
}

# No part of the library may see flags, files of results or figures.
_NOT_IN_LIBRARY = (
    'absl', 'baselines', 'matplotlib', 'pandas', 'sklearn', 'tqdm',
)

# Whatever plans, checks or draws must start without TensorFlow: importing TFF
# takes many seconds. A package stands for all of its modules.
_TENSORFLOW_FREE = (
    'baselines.command',
    'baselines.figures',
    'baselines.files',
    'baselines.regret',
    'baselines.results',
    'baselines.training.main',
    'baselines.training.plan',
    'baselines.training.sampling',
    'baselines.settings',
    'baselines.sweeps',
    'baselines.tasks.registry',
    'tff_localupdate',
    'tff_localupdate.optimizer_settings',
    'tff_localupdate.theory',
    'tff_localupdate.theta',
)
_HEAVY = ('tensorflow', 'tensorflow_federated')


def _unit(name: str) -> str:
  """Returns the entry of `_ALLOWED` that a module belongs to."""
  units = [u for u in _ALLOWED if sources.is_within(name, u)]
  longest = max(units, key=len)
  is_top = '.' not in longest and name != longest
  assert not is_top, f'{name} has no entry in _ALLOWED.'
  return longest


def _library_and_baselines():
  modules = sources.find_modules(*sources.PACKAGES)
  for name, path in modules.items():
    yield name, sources.find_imports(sources.parse(path), modules)


def _tensorflow_free_modules():
  modules = sources.find_modules(*sources.PACKAGES)
  return sorted(
      name
      for name in modules
      for listed in _TENSORFLOW_FREE
      # A top package stands for its __init__ only.
      if name == listed or ('.' in listed and sources.is_within(name, listed))
  )


def test_every_import_is_allowed():
  wrong = []
  for name, imports in _library_and_baselines():
    unit = _unit(name)
    for found in imports:
      if found.when == 'text':
        continue
      if not any(sources.is_within(found.name, p) for p in sources.PACKAGES):
        continue
      if found.name in sources.PACKAGES:
        wrong.append(f'{name}:{found.line} imports the top package.')
      elif _unit(found.name) != unit and not any(
          sources.is_within(found.name, allowed) for allowed in _ALLOWED[unit]
      ):
        wrong.append(f'{name}:{found.line} imports {found.name}.')
  assert not wrong, '\n'.join(wrong)


def test_table_has_no_circular_entry():
  for unit, allowed in _ALLOWED.items():
    for name in allowed:
      assert unit not in _reachable(_unit(name)), f'{unit} and {name}'


def _reachable(unit: str) -> set[str]:
  found = {unit}
  for name in _ALLOWED[unit]:
    found |= _reachable(_unit(name))
  return found


@pytest.mark.parametrize('banned', _NOT_IN_LIBRARY)
def test_library_does_not_import(banned):
  wrong = [
      f'{name}:{found.line}'
      for name, imports in _library_and_baselines()
      if sources.is_within(name, 'tff_localupdate')
      for found in imports
      if sources.is_within(found.name, banned)
  ]
  assert not wrong


def test_tests_and_scripts_are_not_imported():
  for name, imports in _library_and_baselines():
    for found in imports:
      assert not sources.is_within(found.name, 'tests'), name
      assert not sources.is_within(found.name, 'scripts'), name


def test_listed_modules_do_not_import_tensorflow_at_the_start():
  names = _tensorflow_free_modules()
  wrong = [
      f'{name}:{found.line}'
      for name, imports in _library_and_baselines()
      if name in names
      for found in imports
      if found.when == 'start' and found.name.split('.')[0] in _HEAVY
  ]
  assert not wrong


def test_listed_modules_load_without_tensorflow():
  names = _tensorflow_free_modules()
  assert set(_TENSORFLOW_FREE) <= set(names)
  program = (
      'import importlib, sys\n'
      f'for name in {names}:\n'
      '  importlib.import_module(name)\n'
      f'  loaded = [h for h in {_HEAVY} if h in sys.modules]\n'
      '  assert not loaded, f"{name} loads {loaded}"\n'
  )
  done = subprocess.run(
      [sys.executable, '-c', program],
      cwd=sources.ROOT, capture_output=True, text=True, timeout=60,
  )
  assert done.returncode == 0, done.stderr
