"""localupdate-sweep as a user meets it."""

import dataclasses
import os
import subprocess
import sys
import time

import pytest

from baselines import command
from baselines.results import folder as folder_lib
from baselines.results import runs as runs_lib
from baselines.settings import record
from baselines.sweeps import main
from baselines.sweeps import report
from baselines.sweeps import runner

_SMALL = (
    '--model=logistic', '--theta=1:2', '--clients_per_round=3',
    '--batch_size=4', '--rounds=3', '--rounds_per_evaluation=1',
)


@pytest.mark.parametrize('arguments, message', [
    ([], 'At least one of sweep_client_learning_rates'),
    (['--sweep_client_learning_rates=0,x'], 'sweep_client_learning_rates'),
    (['--sweep_client_learning_rates=0,-1'], 'client_learning_rate'),
    (['--sweep_client_learning_rates=0', '--client_learning_rate=1'],
     'client_learning_rate would be ignored'),
    (['--sweep_client_learning_rates=0', '--clients_per_round=101'],
     'clients_per_round'),
    (['--sweep_client_learning_rates=0', '--figure=a.xyz'], 'figure'),
    (['--sweep_client_learning_rates=0', '--no_such'], 'no_such'),
])
def test_bad_input_is_refused_before_tensorflow(
    arguments, message, tmp_path, monkeypatch
):
  monkeypatch.setattr(command, 'announced', None)
  with pytest.raises(command.InputError, match=message):
    main.main([*arguments, f'--output_dir={tmp_path / "sweep"}'])
  assert not os.listdir(tmp_path)


def test_dry_run_lists_the_runs_with_their_stages(
    tmp_path, capsys, monkeypatch
):
  monkeypatch.setattr(command, 'announced', None)
  code = main.main([
      '--sweep_client_learning_rates=0,1', '--dry_run',
      f'--output_dir={tmp_path}',
  ])
  assert code == command.FINISHED
  lines = capsys.readouterr().out.splitlines()
  assert [line.split()[0] for line in lines] == ['new', 'new']
  assert 'digits-gamma1-' in lines[1]
  assert not os.listdir(tmp_path)


def test_sweep_ends_with_table_and_figure(tmp_path, capsys, monkeypatch):
  figure = tmp_path / 'loss.pdf'
  arguments = [
      *_SMALL, '--sweep_client_learning_rates=0,0.5,1e38',
      f'--output_dir={tmp_path / "sweep"}', f'--figure={figure}',
  ]
  assert main.main(arguments) == command.FINISHED
  out = capsys.readouterr().out
  assert 'of all' in out and 'diverged at round' in out
  assert figure.read_bytes().startswith(b'%PDF')
  assert (tmp_path / 'sweep' / 'results.csv').exists()
  monkeypatch.setattr(command, 'announced', None)
  assert main.main(arguments) == command.FINISHED
  assert capsys.readouterr().out == out


def test_killed_sweep_ends_with_the_same_tables(tmp_path):
  arguments = [
      *_SMALL, '--rounds=150', '--rounds_per_evaluation=50',
      '--rounds_per_checkpoint=7', '--sweep_client_learning_rates=0,0.5',
      '--sweep_server_learning_rates=0.1,1', '--notensorboard',
  ]
  names = ('results.csv', 'results.md', 'best.csv', 'best.md')
  straight, killed = tmp_path / 'straight', tmp_path / 'killed'
  assert main.main([*arguments, f'--output_dir={straight}']) == command.FINISHED
  process = subprocess.Popen(
      [sys.executable, '-m', 'baselines.sweeps.main', *arguments,
       f'--output_dir={killed}'],
      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
  )
  deadline = time.monotonic() + 300
  try:
    # In the middle of the second run.
    while len(list(killed.glob('*/checkpoints'))) < 2:
      assert process.poll() is None and time.monotonic() < deadline
      time.sleep(0.005)
  finally:
    process.kill()
    process.wait()
  assert not (killed / 'results.csv').exists()
  assert main.main([*arguments, f'--output_dir={killed}']) == command.FINISHED
  for name in names:
    assert (killed / name).read_bytes() == (straight / name).read_bytes()


@pytest.mark.parametrize('statuses, code', [
    (['finished', 'diverged'], command.FINISHED),
    (['finished', 'failed'], command.FAILED),
    (['finished', 'interrupted'], command.INTERRUPTED),
    (['finished', 'not started'], command.INTERRUPTED),
    (['failed', 'interrupted'], command.FAILED),
])
def test_exit_codes(tmp_path, monkeypatch, statuses, code):
  def pretend(configs, folder, *unused_args, **unused_kwargs):
    for settings, status in zip(configs, statuses):
      run = folder_lib.RunFolder(folder / record.run_id(settings))
      yield dataclasses.replace(
          runs_lib.summarize(settings, run), status=status
      )

  monkeypatch.setattr(
      runner, 'run_points', lambda *a, **k: list(pretend(*a, **k))
  )
  monkeypatch.setattr(
      report, 'report_results', lambda *unused_args, **unused_kwargs: None
  )
  arguments = [
      '--sweep_client_learning_rates=0,1', f'--output_dir={tmp_path}'
  ]
  assert main.main(arguments) == code


_THREE = '--sweep_client_learning_rates=0,0.5,1'


def test_status_tells_what_is_left_and_changes_nothing(
    tmp_path, capsys, monkeypatch
):
  monkeypatch.setattr(command, 'announced', None)
  arguments = ['status', *_SMALL, _THREE, f'--output_dir={tmp_path}']
  assert main.main(arguments) == command.FINISHED
  lines = capsys.readouterr().out.splitlines()
  assert [line.split()[:2] for line in lines[:3]] == [['new', '0/3']] * 3
  assert lines[3] == '3 of 3 left'
  assert not os.listdir(tmp_path)


def test_shards_are_parts_of_the_runs(tmp_path, capsys, monkeypatch):
  monkeypatch.setattr(command, 'announced', None)
  found = []
  for shard in ('1/2', '2/2'):
    main.main([
        *_SMALL, _THREE, '--dry_run', f'--shard={shard}',
        f'--output_dir={tmp_path}',
    ])
    found.append(capsys.readouterr().out.splitlines())
  main.main([*_SMALL, _THREE, '--dry_run', f'--output_dir={tmp_path}'])
  assert found[0] + found[1] == capsys.readouterr().out.splitlines()
  assert [len(part) for part in found] == [1, 2]


def test_shard_without_points_is_done(tmp_path, capsys):
  arguments = [
      *_SMALL, _THREE, '--shard=1/4', f'--output_dir={tmp_path / "sweep"}'
  ]
  assert main.main(arguments) == command.FINISHED
  assert capsys.readouterr().out == 'no runs\n'


@pytest.mark.parametrize('shard', ['0/2', '3/2', '2'])
def test_shard_that_does_not_exist_is_refused(shard):
  with pytest.raises(command.InputError, match='shard must be i/n'):
    main.main([*_SMALL, _THREE, f'--shard={shard}'])


def test_algorithms_of_paper_2_in_one_sweep(tmp_path, capsys):
  arguments = [
      '--task=scaled_regression', '--horizon=4', '--batch_size=1', '--jit=off',
      '--notensorboard', '--rounds_per_evaluation=0', '--sweep_seeds=1:2',
      '--sweep_variants=--algorithm=fed_paq --local_steps=2;'
      '--algorithm=minibatch_sgd --local_steps=4',
      f'--output_dir={tmp_path}',
  ]
  assert main.main(arguments) == command.FINISHED
  lines = capsys.readouterr().out.splitlines()
  head, rows = lines[0].split(), lines[1:5]
  shown = {'algorithm', 'eta', 'seed', 'regret', 'best'}
  assert shown <= set(head)
  assert 'data_seed' not in head  # It is the seed.
  assert [row.split()[0] for row in rows] == ['fed_paq'] * 2 + [
      'minibatch_sgd'
  ] * 2
  assert sum('of all' in row for row in rows) == 4
