"""localupdate-train as a user meets it."""

import json
import os
import pathlib
import subprocess
import sys
import time

import pytest

from baselines import command
from baselines.results import records
from baselines.settings import experiment
from baselines.settings import record
from baselines.training import checkpoints
from baselines.training import main

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_COMMAND = (sys.executable, '-m', 'baselines.training.main')
_COLUMNS = records.columns_of(experiment.ExperimentConfig())
_SMALL = (
    '--model=logistic', '--theta=1:2', '--clients_per_round=3',
    '--batch_size=4', '--rounds_per_evaluation=100',
    '--rounds_per_checkpoint=20',
)


def _quick(*arguments):
  """Runs the command in a fresh process; returns also its processor time.

  That does not depend on what else the machine does, and is the time that a
  user waits: nothing here waits for anything.
  """
  before = os.times()
  done = subprocess.run(
      [*_COMMAND, *arguments], cwd=_ROOT, capture_output=True, text=True,
      timeout=30,
  )
  after = os.times()
  return done, (
      after.children_user + after.children_system
      - before.children_user - before.children_system
  )


@pytest.fixture(name='no_tensorflow')
def _no_tensorflow(monkeypatch):
  def refuse():
    raise AssertionError('TensorFlow is not needed here.')

  monkeypatch.setattr(command, 'announced', refuse)


def test_help_and_wrong_flags_answer_at_once():
  done, seconds = _quick('--help')
  assert done.returncode == 0 and '--client_learning_rate' in done.stdout
  assert seconds < 3.0
  for wrong in ('--no_such_flag', '--task=digitz'):
    done, seconds = _quick(wrong)
    assert done.returncode == command.BAD_INPUT
    assert done.stdout == '' and done.stderr.count('\n') == 1
    assert done.stderr.startswith('localupdate-train: error: ')
    assert seconds < 3.0


@pytest.mark.parametrize('arguments, message', [
    (['--client_learning_rate=-1'], 'client_learning_rate'),
    (['--server_learning_rate=nan'], 'server_learning_rate'),
    (['--theta=1:0'], 'theta'),
    (['--theta='], 'theta'),
    (['--theta=0,0'], 'theta'),
    (['--batch_size=0'], 'batch_size'),
    (['--clients_per_round=101'], 'clients_per_round .* 100'),
    (['--task=digitz'], 'task'),
    (['--server_optimizer=adamw'], 'server_optimizer'),
    (['--yogi_epsilon=0.1'], 'yogi_epsilon'),
    (['--task=femnist', '--data_source=cache', '--data_dir=nowhere'],
     'nowhere'),
])
def test_bad_input_is_refused_before_tensorflow(
    arguments, message, tmp_path, no_tensorflow
):
  output = tmp_path / 'run'
  with pytest.raises(command.InputError, match=message):
    main.main([*arguments, f'--output_dir={output}'])
  assert not output.exists()


def test_dry_run_prints_the_whole_configuration(
    tmp_path, capsys, no_tensorflow
):
  output = tmp_path / 'run'
  arguments = ['--dry_run', '--server_optimizer=yogi', f'--output_dir={output}']
  assert main.main(arguments) == command.FINISHED
  printed = record.from_tree(json.loads(capsys.readouterr().out))
  assert printed.server_optimizer.yogi_beta_2 == 0.99
  assert not output.exists()


def test_finished_run_prints_its_table_again_without_tensorflow(
    tmp_path, capsys, monkeypatch
):
  arguments = [*_SMALL, '--rounds=2', f'--output_dir={tmp_path}']
  assert main.main(arguments) == command.FINISHED
  first = capsys.readouterr()
  assert 'client work ran on CPU:0' in first.err
  assert 'population_loss' in first.out and 'finished' in first.out
  assert (tmp_path / 'events').is_dir()
  before = {p: p.stat().st_mtime_ns for p in tmp_path.rglob('*')}
  monkeypatch.setattr(command, 'announced', None)
  assert main.main(arguments) == command.FINISHED
  assert capsys.readouterr().out == first.out
  assert {p: p.stat().st_mtime_ns for p in tmp_path.rglob('*')} == before


def test_folder_of_another_run_is_refused_and_not_touched(
    tmp_path, no_tensorflow
):
  (tmp_path / 'thesis.tex').write_text('x')
  with pytest.raises(command.InputError, match='no config.json'):
    main.main([*_SMALL, f'--output_dir={tmp_path}'])
  assert os.listdir(tmp_path) == ['thesis.tex']


def test_divergence_has_its_exit_code(tmp_path, capsys):
  arguments = [*_SMALL, '--server_learning_rate=1e30', '--rounds=9',
               '--notensorboard', f'--output_dir={tmp_path}']
  assert main.main(arguments) == command.DIVERGED
  assert 'diverged at round' in capsys.readouterr().out
  assert not (tmp_path / 'events').exists()
  assert main.main(arguments) == command.DIVERGED


def test_failure_has_its_exit_code_and_a_traceback(
    tmp_path, capsys, monkeypatch
):
  from baselines.training import loop

  def fail(*unused_args, **unused_kwargs):
    raise RuntimeError('out of luck')

  monkeypatch.setattr(loop, 'run_experiment', fail)
  code = main.main([*_SMALL, f'--output_dir={tmp_path}'])
  assert code == command.FAILED
  said = capsys.readouterr().err
  assert 'Traceback' in said
  assert said.endswith('localupdate-train: failed: out of luck\n')


def _numbers(path):
  rows = records.read_rows(path / 'metrics.csv', _COLUMNS)
  for row in rows:
    for column in records.MACHINE_COLUMNS:
      del row[column]
  return rows, checkpoints.load(path / 'checkpoints', len(rows) - 1)


def _wait_for_rows(path, count):
  deadline = time.monotonic() + 120
  while len(records.read_rows(path, _COLUMNS)) <= count:
    assert time.monotonic() < deadline, 'no rows'
    time.sleep(0.05)


def test_killed_process_leaves_nothing_behind_and_another_goes_on(tmp_path):
  arguments = [*_COMMAND, *_SMALL, '--rounds=1000']
  killed, straight = tmp_path / 'killed', tmp_path / 'straight'
  driver = subprocess.Popen(
      [*arguments, f'--output_dir={killed}'], cwd=_ROOT,
      stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
  )
  # As in `driver 2>&1 | tee log`: it ends when nobody holds the pipe any more.
  reader = subprocess.Popen(['cat'], stdin=driver.stdout,
                            stdout=subprocess.DEVNULL)
  driver.stdout.close()
  _wait_for_rows(killed / 'metrics.csv', 30)
  for task in pathlib.Path(f'/proc/{driver.pid}/task').iterdir():
    assert (task / 'children').read_text() == ''
  driver.kill()
  assert reader.wait(timeout=5) == 0
  assert driver.wait() == -9
  done = subprocess.run(
      [*arguments, f'--output_dir={killed}'], cwd=_ROOT, capture_output=True,
      text=True, timeout=240,
  )
  assert done.returncode == 0 and 'going on after round' in done.stderr
  assert main.main([*arguments[3:], f'--output_dir={straight}']) == 0
  rows, leaves = _numbers(killed)
  expected_rows, expected_leaves = _numbers(straight)
  assert rows == expected_rows and len(rows) == 1001
  for leaf, expected in zip(leaves, expected_leaves):
    assert leaf.tobytes() == expected.tobytes()


def test_ceal_without_constants_is_refused_before_tensorflow(
    tmp_path, no_tensorflow
):
  output = tmp_path / 'run'
  with pytest.raises(
      command.InputError, match='step_size must be given for task digits: .*'
  ) as caught:
    main.main(['--algorithm=ceal', f'--output_dir={output}'])
  assert '\n' not in str(caught.value) and not output.exists()


def test_run_with_a_horizon_prints_regret_and_bits(tmp_path, capsys):
  arguments = [
      '--algorithm=fed_paq', '--task=scaled_regression', '--horizon=6',
      '--local_steps=2', '--batch_size=1', '--jit=off', '--notensorboard',
      f'--output_dir={tmp_path}',
  ]
  assert main.main(arguments) == command.FINISHED
  table = capsys.readouterr().out
  for row in ('3 of 3', 'cumulative_regret', 'uplink_bits', 'downlink_bits'):
    assert row in table
  # d 30, s 3: 3 (32 + 30 * 3).
  assert '366.0000' in table
  assert 'test_accuracy' not in table
  assert main.main(arguments) == command.FINISHED
  assert capsys.readouterr().out == table
