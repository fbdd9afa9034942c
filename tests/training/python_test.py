"""The Python interface gives what the commands give, and keeps what it made."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import tensorflow_federated as tff

import baselines
from baselines import command
from baselines.sweeps import main as sweep_main
from baselines.training import loop
from baselines.training import main

_SMALL = {
    'model': 'logistic', 'theta': '1:2', 'clients_per_round': 3,
    'batch_size': 4, 'rounds_per_evaluation': 2, 'tensorboard': False,
}


def _flags(**settings):
  texts = {**_SMALL, **settings}
  return [f'--{name}={value}' for name, value in texts.items()]


def _python(program, **options):
  return subprocess.run(
      [sys.executable, '-c', program], capture_output=True, text=True,
      timeout=240, **options,
  )


def test_import_loads_neither_tensorflow_nor_pandas():
  done = _python(
      'import sys, baselines\n'
      'assert callable(baselines.run) and callable(baselines.sweep)\n'
      'assert set(baselines.__all__) <= set(dir(baselines))\n'
      'for wrong in ({"round": 3}, {"theta": "0"}):\n'
      '  try: baselines.run(**wrong)\n'
      '  except baselines.InputError: pass\n'
      'loaded = {"tensorflow", "pandas", "matplotlib"} & set(sys.modules)\n'
      'assert not loaded, loaded\n'
  )
  assert done.returncode == 0, done.stderr


@pytest.mark.parametrize('settings, message', [
    ({'round': 3}, "Unknown setting 'round'. Did you mean rounds?"),
    ({'dry_run': True}, "Unknown setting 'dry_run'"),
    ({'theta': 5}, 'theta must be a text, found 5'),
    ({'rounds': '3'}, "rounds must be a whole number, found '3'"),
    ({'batch_size': None}, 'batch_size must be a whole number, found None'),
    ({'algorithm': 'ceal', 'theta': '1:2'}, "theta would be ignored: algo"),
    ({'data_dir': 'x'}, 'data_dir would be ignored'),
    ({'clients_per_round': 101}, 'clients_per_round must be at most 100'),
    ({'preset': 'no_such'}, 'preset must be one of'),
    ({'preset': 'quickstart'}, 'is a flag of localupdate-sweep'),
])
def test_refused_before_tensorflow(settings, message, monkeypatch):
  monkeypatch.setattr(command, 'announced', None)
  with pytest.raises(baselines.InputError, match=message):
    baselines.run(**settings)


def test_run_is_that_of_the_command(tmp_path):
  main.main([*_flags(rounds=4), f'--output_dir={tmp_path / "command"}'])
  run = baselines.run(rounds=4, output_dir=tmp_path / 'python', **_SMALL)
  assert (run.status, run.reason) == ('finished', '')
  assert run.folder == tmp_path / 'python'
  assert run.settings['theta'] == '1:2' and run.config.run.rounds == 4
  configs = [
      json.loads((tmp_path / name / 'config.json').read_text())
      for name in ('command', 'python')
  ]
  assert configs[0] == configs[1]
  table = run.metrics
  assert list(table['round']) == [0, 1, 2, 3, 4]
  assert np.isnan(table['population_loss'][1])
  of_command = (tmp_path / 'command' / 'metrics.csv').read_text().splitlines()
  heads, last = of_command[0].split(','), of_command[-1].split(',')
  for column in ('loss_before_training', 'population_loss', 'update_norm'):
    assert table[column].iloc[-1] == float(last[heads.index(column)])


def test_weights_are_those_that_were_evaluated():
  run = baselines.run(rounds=3, **_SMALL)
  assert {k: v.shape for k, v in run.weights.items()} == {
      '0': (64, 10), '1': (10,)
  }
  tools = main.shared_workbench().tools(run.config)
  found = tools.evaluator.evaluate(
      tff.learning.models.ModelWeights(tuple(run.weights.values()), ())
  )
  assert found.population_loss == run.metrics['population_loss'].iloc[-1]


def test_leaves_are_named_as_far_as_names_go():
  named = loop.named_leaves({'b': [1.0, {'c': 2.0}], 'a': 3.0}, 'x/')
  assert list(named) == ['x/a', 'x/b/0', 'x/b/1/c']
  assert named['x/b/1/c'] == 2.0
  assert loop.named_leaves(()) == {}


def test_second_run_with_other_rates_compiles_nothing():
  first = baselines.run(rounds=2, **_SMALL)
  program = main.shared_workbench().tools(first.config).program
  before = program.num_compiled
  second = baselines.run(
      rounds=2, client_learning_rate=0.7, sampling_seed=9, **_SMALL
  )
  assert main.shared_workbench().tools(second.config).program is program
  assert program.num_compiled == before
  assert first.metrics['update_norm'][2] != second.metrics['update_norm'][2]


def test_divergence_is_a_status():
  run = baselines.run(rounds=5, client_learning_rate=1e38, **_SMALL)
  assert run.status == 'diverged' and 'is' in run.reason
  assert len(run.metrics) < 6


def test_output_folder_goes_on_and_a_run_that_is_done_stays(
    tmp_path, monkeypatch
):
  straight = baselines.run(rounds=6, **_SMALL)
  baselines.run(rounds=3, output_dir=tmp_path, **_SMALL)
  longer = baselines.run(rounds=6, output_dir=tmp_path, **_SMALL)
  machine = ['round_seconds', 'evaluation_seconds', 'resident_mib']
  a, b = (r.metrics.drop(columns=machine) for r in (straight, longer))
  rounds = [0, 1, 2, 4, 5, 6]  # Round 3 was evaluated as the last one.
  assert a.iloc[rounds].equals(b.iloc[rounds])
  for name, leaf in straight.weights.items():
    assert leaf.tobytes() == longer.weights[name].tobytes()
  monkeypatch.setattr(command, 'announced', None)
  again = baselines.run(rounds=6, output_dir=tmp_path, **_SMALL)
  assert again == longer
  with pytest.raises(baselines.InputError, match='other settings: batch_size'):
    baselines.run(rounds=6, output_dir=tmp_path, **{**_SMALL, 'batch_size': 5})


def test_save_copies_a_run_that_can_go_on(tmp_path):
  run = baselines.run(rounds=2, **_SMALL)
  saved = run.save(tmp_path / 'kept')
  assert saved.folder == tmp_path / 'kept' and saved.metrics.equals(run.metrics)
  for name, weight in run.weights.items():
    np.testing.assert_array_equal(saved.weights[name], weight)
  longer = baselines.run(rounds=4, output_dir=saved.folder, **_SMALL)
  assert len(longer.metrics) == 5
  # Times too: no round was run again.
  assert longer.metrics[:3].equals(run.metrics)
  with pytest.raises(baselines.InputError, match='folder must be new or empty'):
    run.save(tmp_path)


def test_temporary_folders_go_when_the_program_ends(tmp_path):
  done = _python(
      'import baselines\n'
      f'run = baselines.run(rounds=1, progress=False, **{_SMALL})\n'
      'print(run.folder)\n'
      'assert (run.folder / "metrics.csv").exists()\n'
      'assert baselines.run(rounds=1, progress=False).folder != run.folder\n'
      'raise ValueError("an end like any other")\n',
      env={
          **os.environ, 'TMPDIR': str(tmp_path), 'TF_CPP_MIN_LOG_LEVEL': '3'
      },
  )
  folder = pathlib.Path(done.stdout.strip())
  assert folder.is_relative_to(tmp_path) and not folder.exists()
  assert not list(tmp_path.glob('localupdate-*'))
  # Nothing was reported, and nothing goes wrong at the end.
  lines = done.stderr.splitlines()
  assert lines[0].startswith('Traceback') and lines[-1].startswith('ValueError')


def _interrupt(folder, rounds):
  """Sends SIGINT, as a notebook does, once a metrics.csv has some rows."""
  def wait():
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
      found = list(folder.rglob('metrics.csv'))
      if found and found[0].read_text().count('\n') > rounds:
        os.kill(os.getpid(), signal.SIGINT)
        return
      time.sleep(0.01)

  threading.Thread(target=wait, daemon=True).start()


def test_interruption_saves_the_run_and_the_same_call_goes_on(tmp_path):
  settings = {**_SMALL, 'rounds': 4000, 'rounds_per_evaluation': 0}
  _interrupt(tmp_path, 5)
  with pytest.raises(KeyboardInterrupt, match='saved in') as caught:
    baselines.run(output_dir=tmp_path / 'run', progress=False, **settings)
  run = caught.value.run
  assert isinstance(caught.value, baselines.Interrupted)
  assert run.status == 'interrupted' and 5 < len(run.metrics) < 4001
  saved = len(list((tmp_path / 'run' / 'checkpoints').iterdir()))
  assert saved and run.weights
  done = baselines.run(
      output_dir=tmp_path / 'run', progress=False, **settings
  )
  assert done.status == 'finished' and len(done.metrics) == 4001


def test_sweep_over_any_settings_is_one_table(tmp_path):
  small = {k: v for k, v in _SMALL.items() if k != 'theta'}
  table = baselines.sweep(
      {'client_learning_rate': [0, 0.5, 1e38], 'theta': ['1:2', 'k2'],
       'seeds': np.arange(1, 3)},
      rounds=3, output_dir=tmp_path, **small,
  )
  assert len(table) == 12
  assert list(table['theta']) == ['1:2'] * 6 + ['k2'] * 6
  assert list(table['sampling_seed']) == [1, 2] * 6
  expected = [
      'diverged' if rate > 1 else 'finished'
      for rate in table['client_learning_rate']
  ]
  assert list(table['status']) == expected
  loaded = baselines.load(tmp_path)
  assert set(loaded['run_id']) == set(table['run_id'])
  (one,) = table.loc[table['run_id'] == table['run_id'][3], 'last_loss']
  (same,) = loaded.loc[loaded['run_id'] == table['run_id'][3], 'last_loss']
  assert one == same


def test_sweep_is_that_of_the_command(tmp_path, monkeypatch):
  sweep_main.main([
      *_flags(rounds=3), '--sweep_client_learning_rates=0,0.5',
      f'--output_dir={tmp_path}',
  ])
  monkeypatch.setattr(command, 'announced', None)  # All is done.
  table = baselines.sweep(
      {'client_learning_rate': [0, 0.5]}, rounds=3, output_dir=tmp_path,
      **_SMALL,
  )
  assert list(table['status']) == ['finished'] * 2
  table = baselines.sweep(
      sweep_client_learning_rates='0,0.5', rounds=3, output_dir=tmp_path,
      **_SMALL,
  )
  assert len(table) == 2


@pytest.mark.parametrize('grid, settings, message', [
    ({'thetas': ['1:2']}, {}, "Unknown setting 'thetas'. Did you mean theta?"),
    ({'theta': '1:2'}, {}, 'theta must be a list of values'),
    ({'theta': ['1:2']}, {'theta': '1:3'}, 'theta would be ignored: the grid'),
    ({'rounds': [1, 2]}, {}, 'must not differ in rounds'),
    ({'client_learning_rate': [0, -1]}, {}, 'rate must be at least 0'),
    ({'theta': ['1:2']}, {'algorithm': 'ceal'}, 'theta would be ignored'),
    (None, {'rounds': 3}, 'At least one of sweep_client_learning_rates'),
    ({}, {'figure': 'a.png'}, "Unknown setting 'figure'"),
    ({}, {'grid': 'vector'}, "grid would be ignored: algorithm is 'local_upd"),
])
def test_sweeps_refused_before_tensorflow(
    grid, settings, message, monkeypatch
):
  monkeypatch.setattr(command, 'announced', None)
  with pytest.raises(baselines.InputError, match=message):
    baselines.sweep(grid, **settings)


def test_interrupted_sweep_goes_on_with_the_same_call(tmp_path):
  settings = {**_SMALL, 'rounds': 1000, 'rounds_per_evaluation': 0,
              'output_dir': tmp_path, 'progress': False}
  grid = {'client_learning_rate': [0.1, 0.2]}
  _interrupt(tmp_path, 5)
  with pytest.raises(baselines.Interrupted, match='runs are saved in'):
    baselines.sweep(grid, **settings)
  assert len(list(tmp_path.iterdir())) == 1
  table = baselines.sweep(grid, **settings)
  assert list(table['status']) == ['finished'] * 2
  assert list(table['round']) == [1000] * 2


def test_load_refuses_what_holds_no_run(tmp_path):
  with pytest.raises(baselines.InputError, match='runs must be'):
    baselines.load(tmp_path)
