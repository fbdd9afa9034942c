"""What is installed is the lock, and the lock is what setup.py asks for."""

import re
import subprocess
import sys

from packaging.requirements import Requirement
import pytest

from scripts import check_environment
from tests.structure import sources

_BASE = 'requirements.txt'
_EXTRAS = 'requirements-extras.txt'
_LOCKS = (_BASE, 'requirements-gpu.txt', _EXTRAS)
_PYTHONS = ('3.9', '3.10', '3.11')


def _lock_lines(file):
  text = (sources.ROOT / file).read_text(encoding='utf-8')
  return [line for line in text.splitlines() if not line.startswith('#')]


def test_lock_is_installed():
  assert check_environment.find_lock_fault(str(sources.ROOT / _BASE)) is None


def test_optional_parts_are_installed_whole_or_not_at_all():
  fault = check_environment.find_lock_fault(str(sources.ROOT / _EXTRAS))
  if fault is not None and fault.endswith(' is not installed'):
    pytest.skip(f'scripts/test.sh installs the optional parts: {fault}')
  assert fault is None


def test_missing_and_other_versions_are_faults(tmp_path):
  lock = tmp_path / 'lock.txt'
  lock.write_text('# A comment.\n\nnumpy==0.1\n', encoding='utf-8')
  assert re.fullmatch(
      r'numpy is at 1\.\S+, not ==0\.1', check_environment.find_lock_fault(lock)
  )
  lock.write_text("no-such==1 ; python_version < '3'\nno-such==2\n")
  assert check_environment.find_lock_fault(lock) == 'no-such is not installed'


def test_pip_complains_about_the_two_overrides_only():
  done = subprocess.run(
      [sys.executable, '-m', 'pip', 'check'],
      capture_output=True, text=True, timeout=120,
  )
  assert sorted(done.stdout.splitlines()) == [
      'tensorflow-federated 0.87.0 has requirement jax==0.4.14, but you have'
      ' jax 0.4.20.',
      'tensorflow-federated 0.87.0 has requirement jaxlib==0.4.14, but you have'
      ' jaxlib 0.4.20.',
  ]


def test_locks_hold_exact_versions_from_no_address():
  for file in _LOCKS:
    lines = _lock_lines(file)
    assert lines == sorted(lines, key=lambda line: line.split('==')[0])
    for line in lines:
      assert re.fullmatch(
          r"[a-z0-9-]+==\d[\w.]*( ; python_version (<|==|>=) '3\.\d+')?", line
      )


@pytest.mark.parametrize('python', _PYTHONS)
def test_locks_have_one_version_per_python(python):
  base, extras = (_versions(lock, python) for lock in (_BASE, _EXTRAS))
  assert {'tensorflow-federated', 'pandas', 'wheel'} <= base.keys()
  assert {'pytest', 'ruff', 'pyarrow', 'optuna', 'plotly'} <= extras.keys()
  # So the order in which they are installed does not matter.
  for name in base.keys() & extras.keys():
    assert base[name] == extras[name]


def _versions(lock, python):
  """The version of each package that a lock has for a Python."""
  lines = map(Requirement, _lock_lines(lock))
  meant = [
      line for line in lines
      if line.marker is None or line.marker.evaluate({'python_version': python})
  ]
  found = {line.name: str(line.specifier) for line in meant}
  assert len(found) == len(meant)
  return found


def test_pins_of_others_hold_for_the_optional_parts():
  # TensorFlow and TFF ask for these; newer ones came with some extra before.
  assert {'typing-extensions==4.5.0', 'sqlalchemy==1.4.20'} <= set(
      _lock_lines(_BASE)
  )
  assert 'distributed' in _versions(_EXTRAS, '3.9')


def test_optional_parts_can_be_imported():
  # What a package wants is not always what it says that it wants.
  modules = (
      'pandas', 'pyarrow.parquet', 'plotly.graph_objects', 'optuna',
      'distributed', 'hypothesis', 'IPython', 'ipykernel', 'nbclient',
      'nbformat', 'selenium.webdriver',
  )
  if check_environment.find_lock_fault(str(sources.ROOT / _EXTRAS)):
    pytest.skip('scripts/test.sh installs the optional parts')
  done = subprocess.run(
      [sys.executable, '-c', f'import {", ".join(modules)}'],
      capture_output=True, text=True, timeout=120,
  )
  assert done.returncode == 0, done.stderr


def test_gpu_extra_is_the_gpu_lock():
  text = (sources.ROOT / 'setup.py').read_text(encoding='utf-8')
  assert sorted(re.findall(r"'(nvidia-[^']*)'", text)) == _lock_lines(
      'requirements-gpu.txt'
  )
