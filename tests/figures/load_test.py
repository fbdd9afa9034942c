"""Run folders are read as they are, also while a run is at work."""

import json

import numpy as np
import pytest

from baselines.figures import load


def write_run(
    path, *, status='finished', rows=((0, 2.0), (1, ''), (2, 1.0)), **settings
):
  """Writes a run folder by hand: the format, not the code that writes it."""
  path.mkdir(parents=True)
  values = {
      'task': 'digits', 'model': 'cnn', 'theta': '1:10',
      'server_optimizer': 'sgd', 'client_learning_rate': 0.1,
      'server_learning_rate': 0.5, 'sampling_seed': 1, 'rounds': 2,
      **settings,
  }
  record = {'settings': {'task': {}, 'run': values}}
  (path / 'config.json').write_text(json.dumps(record))
  (path / 'status.json').write_text(json.dumps({'status': status}))
  lines = [f'{r},{loss},' for r, loss in rows]
  (path / 'metrics.csv').write_text(
      '\n'.join(['round,population_loss,test_accuracy', *lines, ''])
  )
  return path


def test_run_is_read(tmp_path):
  run = load.load_run(write_run(tmp_path / 'a', status='diverged'))
  assert run.settings['client_learning_rate'] == 0.1
  assert run.components['task'] == {} and len(run.components['run']) == 8
  assert run.diverged
  np.testing.assert_array_equal(
      run.metrics['population_loss'], [2.0, np.nan, 1.0]
  )


def test_half_written_row_is_not_read(tmp_path):
  path = write_run(tmp_path / 'a')
  with open(path / 'metrics.csv', 'a', encoding='utf-8') as stream:
    stream.write('3,0.')
  assert len(load.load_run(path).metrics) == 3


def test_folder_of_runs_or_one_run(tmp_path):
  write_run(tmp_path / 'b')
  write_run(tmp_path / 'a')
  (tmp_path / 'results.csv').touch()
  names = [run.path.name for run in load.load_runs(tmp_path)]
  assert names == ['a', 'b']
  assert len(load.load_runs(tmp_path / 'a')) == 1


def test_no_run_or_a_broken_one_is_refused(tmp_path):
  with pytest.raises(ValueError, match='has no config.json'):
    load.load_runs(tmp_path)
  path = write_run(tmp_path / 'a')
  (path / 'config.json').write_text('{')
  with pytest.raises(ValueError, match='cannot be read'):
    load.load_runs(tmp_path)
  (path / 'config.json').unlink()
  with pytest.raises(ValueError, match='nor has any folder'):
    load.load_runs(tmp_path)


def test_run_that_failed_at_once_has_no_rows(tmp_path):
  path = write_run(tmp_path / 'a', status='failed')
  (path / 'metrics.csv').unlink()
  run = load.load_run(path)
  assert run.status == 'failed' and run.metrics.empty
  assert 'round' in run.metrics


def test_run_without_status_is_unknown(tmp_path):
  path = write_run(tmp_path / 'a')
  (path / 'status.json').unlink()
  assert load.load_run(path).status == 'unknown'


def test_repetitions_differ_in_seeds_only(tmp_path):
  first = load.load_run(write_run(tmp_path / 'a'))
  same = load.load_run(write_run(tmp_path / 'b', sampling_seed=2))
  other = load.load_run(write_run(tmp_path / 'c', server_learning_rate=1.0))
  assert first.identity == same.identity != other.identity
  assert (first.seeds, same.seeds) == ((None, None, 1), (None, None, 2))
  names = ['client_learning_rate', 'server_learning_rate', 'data_seed']
  assert load.varying([first, same, other], names) == ['server_learning_rate']
