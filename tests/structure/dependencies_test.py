"""What is installed is the lock, and the lock is what setup.py asks for."""

import re
import subprocess
import sys

from scripts import check_environment
from tests.structure import sources

_LOCKS = ('requirements.txt', 'requirements-gpu.txt')


def _lock_lines(file):
  text = (sources.ROOT / file).read_text(encoding='utf-8')
  return [line for line in text.splitlines() if not line.startswith('#')]


def test_lock_is_installed():
  lock = sources.ROOT / 'requirements.txt'
  assert check_environment.find_lock_fault(str(lock)) is None


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


def test_lock_has_one_version_per_python():
  from packaging.requirements import Requirement

  for version in ('3.9', '3.10', '3.11'):
    names = [
        requirement.name
        for requirement in map(Requirement, _lock_lines('requirements.txt'))
        if requirement.marker is None
        or requirement.marker.evaluate({'python_version': version})
    ]
    assert len(names) == len(set(names))
    assert {'tensorflow-federated', 'pytest', 'ruff', 'wheel'} <= set(names)


def test_gpu_extra_is_the_gpu_lock():
  text = (sources.ROOT / 'setup.py').read_text(encoding='utf-8')
  assert sorted(re.findall(r"'(nvidia-[^']*)'", text)) == _lock_lines(
      'requirements-gpu.txt'
  )
