"""scripts/sweep.sh divides a sweep among processes."""

import os
import pathlib
import shutil
import signal
import subprocess
import time

import pytest

_SCRIPT = pathlib.Path(__file__).parents[2] / 'scripts' / 'sweep.sh'

# Stands in for localupdate-sweep: notes its flags and its GPU.
_SWEEP = '''#!/usr/bin/env bash
echo "$* on ${CUDA_VISIBLE_DEVICES-any}" >> calls
[[ " $* " != *" --bad "* ]] || exit 2
if [[ $* == *--slow*--shard* ]]; then
  trap 'echo saved >> calls; exit 75' TERM
  touch started.$$
  while :; do sleep 0.05; done
fi
'''


@pytest.fixture(name='root')
def _root(tmp_path):
  """A repository whose environment is there."""
  (tmp_path / 'scripts').mkdir()
  shutil.copy(_SCRIPT, tmp_path / 'scripts')
  (tmp_path / 'scripts' / 'environment.sh').write_text(
      'cd "$(dirname "${BASH_SOURCE[0]}")/.."; export PATH="$PWD/bin:$PATH"\n'
  )
  (tmp_path / 'bin').mkdir()
  command = tmp_path / 'bin' / 'localupdate-sweep'
  command.write_text(_SWEEP)
  command.chmod(0o755)
  return tmp_path


def _start(root, *arguments, gpus=None):
  environment = {
      name: value for name, value in os.environ.items()
      if name != 'CUDA_VISIBLE_DEVICES'
  }
  if gpus is not None:
    environment['CUDA_VISIBLE_DEVICES'] = gpus
  return subprocess.Popen(
      [root / 'scripts' / 'sweep.sh', *arguments],
      env=environment, stderr=subprocess.PIPE, text=True,
  )


def _calls(root):
  path = root / 'calls'
  return path.read_text().splitlines() if path.exists() else []


def test_one_process_by_default(root):
  assert _start(root, '--a=1', '--b', gpus='3').wait() == 0
  assert _calls(root) == ['--a=1 --b on 3']


def test_parts_take_the_gpus_in_turn_and_tables_come_last(root):
  assert _start(root, '--processes', '3', '--a=1', gpus='0,2').wait() == 0
  first, *parts, last = _calls(root)
  assert first.startswith('--a=1 --dry_run on')
  assert sorted(parts) == [
      '--a=1 --shard=1/3 on 0', '--a=1 --shard=2/3 on 2',
      '--a=1 --shard=3/3 on 0',
  ]
  assert last.startswith('--a=1 on')


@pytest.mark.parametrize('number', ['0', 'x', '-1', ''])
def test_number_of_processes_is_checked(root, number):
  process = _start(root, '--processes', number)
  assert process.wait() == 2
  assert f"at least 1, found '{number}'" in process.stderr.read()
  assert not _calls(root)


def test_wrong_flags_end_it_before_any_part(root):
  assert _start(root, '--processes', '2', '--bad').wait() == 2
  assert len(_calls(root)) == 1


def test_signal_lets_all_parts_save(root):
  process = _start(root, '--processes', '2', '--slow')
  deadline = time.monotonic() + 30
  while len(list(root.glob('started.*'))) < 2:
    assert time.monotonic() < deadline
    time.sleep(0.05)
  process.send_signal(signal.SIGTERM)
  assert process.wait(30) == 75
  assert _calls(root)[3:] == ['saved', 'saved']
