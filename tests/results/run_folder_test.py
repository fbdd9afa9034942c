"""The run folder: settings, status, and one process at a time."""

import errno
import fcntl
import json

import pytest

from baselines import command
from baselines.results import folder as folder_lib
from baselines.settings import experiment

_CONFIG = experiment.ExperimentConfig(
    server_optimizer=experiment.ServerOptimizerConfig('yogi')
)


@pytest.fixture(name='folder')
def _folder(tmp_path):
  return folder_lib.RunFolder(tmp_path / 'a' / 'run')


def test_config_survives(folder):
  with folder.locked():
    folder.write_config(_CONFIG)
  assert folder.read_config() == _CONFIG
  record = json.loads((folder.path / 'config.json').read_text())
  assert record['settings']['server_optimizer']['yogi_beta_2'] == 0.99
  assert record['versions']['tensorflow-federated'] == '0.87.0'


def test_settings_that_may_change_are_adopted(folder):
  with folder.locked():
    folder.write_config(_CONFIG, {'words': 'a'})
  path = folder.path / 'config.json'
  before = path.read_text()
  folder.adopt_config(_CONFIG)
  assert path.read_text() == before
  longer = experiment.replace_settings(_CONFIG, rounds=1234)
  folder.adopt_config(longer)
  assert folder.read_config() == longer
  record = json.loads(path.read_text())
  assert record['data_digests'] == {'words': 'a'} and 'versions' in record


@pytest.mark.parametrize('text', ['', '[]', '{}', '{"settings": {}}', '{"a'])
def test_other_config_is_refused(folder, text):
  folder.path.mkdir(parents=True)
  (folder.path / 'config.json').write_text(text)
  with pytest.raises(command.InputError, match='not the record of a run'):
    folder.read_config()


def test_changed_data_are_refused_and_the_record_kept(folder):
  folder.check_digests({'words': 'a'})  # Nothing is recorded yet.
  with folder.locked():
    folder.write_config(_CONFIG, {'words': 'a', 'tags': 'b'})
  folder.check_digests({'words': 'a', 'tags': 'b'})
  with pytest.raises(command.InputError, match='other data: tags must be'):
    folder.check_digests({'words': 'a', 'tags': 'c'})


def test_status_survives_and_a_broken_one_is_none(folder):
  assert folder.read_status() is None
  with folder.locked():
    folder.write_status(folder_lib.DIVERGED, 7, 'loss is nan')
  assert folder.read_status() == folder_lib.Status(
      'diverged', 7, 'loss is nan'
  )
  for text in ('{"sta', '{"status": "finished", "round": "5"}'):
    (folder.path / 'status.json').write_text(text)
    assert folder.read_status() is None


def test_new_folders(folder):
  assert folder.is_new()
  folder.path.mkdir(parents=True)
  assert folder.is_new()
  # What a start leaves that is killed at once.
  (folder.path / 'lock').touch()
  (folder.path / 'config.json.partial').touch()
  assert folder.is_new()
  with folder.locked():
    folder.write_config(_CONFIG)
  assert not folder.is_new()


def test_foreign_folder_and_file_are_refused(folder, tmp_path):
  folder.path.mkdir(parents=True)
  (folder.path / 'thesis.tex').touch()
  with pytest.raises(command.InputError, match='no config.json'):
    folder.is_new()
  file = folder_lib.RunFolder(tmp_path / 'file')
  file.path.touch()
  with pytest.raises(command.InputError, match='must be a folder'):
    file.is_new()
  with pytest.raises(command.InputError, match='must be a folder'):
    file.locked().__enter__()


def test_second_holder_is_refused_until_the_first_is_gone(folder):
  folder.check_unlocked()
  with folder.locked():
    with pytest.raises(command.InputError, match='in use by another process'):
      folder.check_unlocked()
    with pytest.raises(command.InputError, match='in use by another process'):
      with folder.locked():
        pass
  folder.check_unlocked()
  with folder.locked():
    pass


def test_file_system_without_locks_is_warned_of(folder, monkeypatch, capsys):
  def flock(unused_stream, unused_operation):
    raise OSError(errno.ENOSYS, 'Function not implemented')

  monkeypatch.setattr(fcntl, 'flock', flock)
  with folder.locked():
    folder.write_config(_CONFIG)
  assert 'has no locks: no second process' in capsys.readouterr().err


def test_what_the_system_says_is_bad_input(tmp_path):
  with pytest.raises(command.InputError, match='x cannot be read: .*denied'):
    with folder_lib.reading(tmp_path / 'x'):
      raise PermissionError(errno.EACCES, 'Permission denied')
