"""Places for results: what is refused, before anything is written."""

import os

import pytest

from baselines import command
from baselines.sweeps import runner


def test_new_and_old_sweep_folders_will_do(tmp_path):
  runner.check_folder(tmp_path / 'new' / 'sweep', None)
  run = tmp_path / 'sweep' / 'run'
  run.mkdir(parents=True)
  (run / 'config.json').write_text('{}')
  (tmp_path / 'sweep' / 'results.csv').write_text('')
  runner.check_folder(tmp_path / 'sweep', str(tmp_path / 'figure.png'))
  assert not (tmp_path / 'new').exists()


def test_sweep_that_was_stopped_before_its_first_run_goes_on(tmp_path):
  for name in ('results.csv', 'results.md'):
    (tmp_path / name).write_text('')
  runner.check_folder(tmp_path, None)


def _refused(path, figure, words):
  with pytest.raises(command.InputError, match=words):
    runner.check_folder(path, figure)


def test_results_of_others_are_not_overwritten(tmp_path):
  (tmp_path / 'results.csv').write_text('mine')
  _refused(tmp_path, None, 'no run')
  (tmp_path / 'config.json').write_text('{}')
  _refused(tmp_path, None, 'found a run')
  assert (tmp_path / 'results.csv').read_text() == 'mine'


def test_places_that_cannot_be_written_are_refused(tmp_path):
  file = tmp_path / 'file'
  file.write_text('')
  (tmp_path / 'loop').symlink_to(tmp_path / 'loop')
  _refused(file, None, 'output_dir must be a folder')
  _refused(file / 'below', None, 'output_dir must be a folder')
  _refused(tmp_path / ('n' * 300), None, 'output_dir must be a folder')
  _refused(tmp_path / 'new', str(file / 'a.png'), 'the folder of figure')
  _refused(tmp_path / 'new', str(tmp_path), 'figure must be a file')
  if os.getuid():  # root may write anywhere
    tmp_path.chmod(0o555)
    _refused(tmp_path / 'new', None, 'output_dir must be a folder')
