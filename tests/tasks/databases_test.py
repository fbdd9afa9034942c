"""Bad databases are told apart, each with what to do; good ones are read."""

from concurrent import futures
import os
import sqlite3

import pytest

from baselines.tasks import databases
from tests.tasks import database_cases

_SPEC = databases.DatabaseSpec('clients.sqlite', 'train', 'test')
_ROWS = {
    ('train', 'b'): [b'b0', b'b1'],
    ('train', 'a'): [b'a0'],
    ('test', 'a'): [b'a1'],
}


def _write(path, stated=None):
  database_cases.write(path, _ROWS, stated)


@pytest.fixture(name='folder')
def _folder(tmp_path):
  # A name that is not plain in a URI.
  folder = tmp_path / 'my data %3F#1'
  folder.mkdir()
  _write(folder / _SPEC.file_name)
  return folder


def _check(folder):
  return databases.check_cache(_SPEC, str(folder))


def test_good_database(folder):
  path = str(folder / _SPEC.file_name)
  assert _check(folder) == 2
  assert databases.client_counts(path, 'train') == (('a', 'b'), [1, 2])
  assert list(databases.examples(path, 'train')) == [[b'a0', b'b0', b'b1']]


def test_database_that_may_not_be_written_is_read(folder):
  (folder / _SPEC.file_name).chmod(0o444)
  folder.chmod(0o555)
  assert _check(folder) == 2
  folder.chmod(0o755)  # So that it can be cleared away.


@pytest.mark.parametrize('data_dir', [None, ''])
def test_no_folder_given(data_dir):
  with pytest.raises(ValueError, match='data_dir must name the folder'):
    databases.check_cache(_SPEC, data_dir)


def test_missing_folder(tmp_path):
  with pytest.raises(FileNotFoundError, match="nowhere' is not a folder; give"):
    _check(tmp_path / 'nowhere')


def test_missing_file(tmp_path):
  with pytest.raises(
      FileNotFoundError, match='clients.sqlite does not exist; put'
  ):
    _check(tmp_path)


def test_half_a_file_names_path_and_both_sizes(folder):
  path = folder / _SPEC.file_name
  whole = path.stat().st_size
  os.truncate(path, whole // 2)
  with pytest.raises(ValueError, match='cut off') as info:
    _check(folder)
  message = str(info.value)
  assert str(path) in message and '\n' not in message
  assert f'expected {whole} bytes, found {whole // 2}' in message
  assert 'delete it' in message


def test_file_cut_within_the_header(folder):
  os.truncate(folder / _SPEC.file_name, 50)
  with pytest.raises(ValueError, match=r'not an SQLite database \(50 bytes\)'):
    _check(folder)


def test_other_kind_of_file(folder):
  (folder / _SPEC.file_name).write_bytes(b'\xfd7zXZ\x00' * 100)
  with pytest.raises(ValueError, match='not an SQLite database.*unpacked'):
    _check(folder)


def test_scribbled_file(folder):
  path = folder / _SPEC.file_name
  content = bytearray(path.read_bytes())
  content[100:4096] = b'\xff' * (4096 - 100)
  path.write_bytes(content)
  with pytest.raises(ValueError, match='cannot be read as a database'):
    _check(folder)


def test_foreign_database(folder):
  path = folder / _SPEC.file_name
  path.unlink()
  with sqlite3.connect(path) as connection:
    connection.execute('CREATE TABLE examples (x INTEGER)')
  connection.close()
  with pytest.raises(ValueError, match=r"lacks the tables \['client_metadata'"):
    _check(folder)


def test_missing_split_lists_those_there_are(folder):
  spec = databases.DatabaseSpec(_SPEC.file_name, 'train', 'heldout')
  with pytest.raises(
      ValueError, match=r"no split 'heldout', only \['test', 'train'\]"
  ):
    databases.check_cache(spec, str(folder))


@pytest.mark.parametrize('stated, found', [(3, 2), (1, 2)])
def test_examples_that_do_not_match_the_table_of_clients(
    tmp_path, stated, found
):
  path = tmp_path / _SPEC.file_name
  _write(path, stated={'b': stated})
  with pytest.raises(
      ValueError, match=f"'b' of split 'train' should hold {stated} .*{found};"
  ):
    databases.client_counts(str(path), 'train')


def test_stated_counts_do_not_look_at_examples(tmp_path):
  path = tmp_path / _SPEC.file_name
  _write(path, stated={'b': 7})
  assert databases.stated_counts(str(path), 'train') == (('a', 'b'), [1, 7])


def test_examples_of_some_clients(folder):
  path = str(folder / _SPEC.file_name)
  found = databases.client_examples(path, 'train', ['b', 'nobody', 'a'])
  assert found == [[b'b0', b'b1'], [], [b'a0']]


def test_examples_can_be_read_in_another_thread(folder):
  path = str(folder / _SPEC.file_name)
  with futures.ThreadPoolExecutor(2) as executor:
    found = list(executor.map(
        lambda name: databases.client_examples(path, 'train', [name]), 'abab'
    ))
  assert found == [[[b'a0']], [[b'b0', b'b1']]] * 2
