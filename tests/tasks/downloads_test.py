"""Downloads arrive whole or not at all, once for all runs."""

import errno
import hashlib
import http.client
import lzma
import os
import sqlite3
import threading
import urllib.error

import pytest

from baselines.tasks import databases
from baselines.tasks import downloads
from baselines.tasks import vocabularies

_SPEC = databases.DatabaseSpec('clients.sqlite', 'train', 'test')


def _write(path):
  with sqlite3.connect(path) as connection:
    connection.execute('CREATE TABLE examples (x INTEGER)')
    connection.execute(
        'CREATE TABLE client_metadata (client_id TEXT, split_name TEXT)'
    )
    connection.executemany(
        'INSERT INTO client_metadata VALUES (?, ?)',
        [('a', 'train'), ('b', 'train'), ('a', 'test')],
    )
  connection.close()


def test_download_fetches_once_for_runs_that_start_together(tmp_path):
  fetched = []

  def load_data(cache_dir):
    fetched.append(cache_dir)
    # Under its final name the file must appear whole.
    assert not (tmp_path / _SPEC.file_name).exists()
    _write(os.path.join(cache_dir, _SPEC.file_name))

  def run():
    paths.append(downloads.ensure_downloaded(_SPEC, str(tmp_path), load_data))

  paths = []
  threads = [threading.Thread(target=run) for _ in range(4)]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join()
  assert len(fetched) == 1
  assert paths == [str(tmp_path / _SPEC.file_name)] * 4
  assert downloads.check_download(_SPEC, str(tmp_path)) == 2
  assert not list(tmp_path.glob('.part-*'))


def test_nothing_is_left_of_a_download_that_arrives_cut(tmp_path):
  def load_data(cache_dir):
    path = os.path.join(cache_dir, _SPEC.file_name)
    _write(path)
    os.truncate(path, os.path.getsize(path) // 2)

  with pytest.raises(ValueError, match='cut off'):
    downloads.ensure_downloaded(_SPEC, str(tmp_path), load_data)
  assert downloads.check_download(_SPEC, str(tmp_path)) is None
  assert not list(tmp_path.glob('.part-*'))


@pytest.mark.parametrize(
    'error, message',
    [
        (urllib.error.URLError('no route'), 'not be downloaded .*no route'),
        (TimeoutError('timed out'), 'not be downloaded .*timed out'),
        (http.client.IncompleteRead(b'', 5), 'not be downloaded .*Incomplete'),
        (OSError(errno.ENOSPC, 'No space left'), 'does not fit on the disk'),
        (sqlite3.DatabaseError('malformed'), 'did not arrive whole'),
        (lzma.LZMAError('corrupt'), 'did not arrive whole'),
    ],
)
def test_failed_download_says_what_to_do(tmp_path, error, message):
  def load_data(cache_dir):
    del cache_dir
    raise error

  with pytest.raises((OSError, ValueError), match=message):
    downloads.ensure_downloaded(_SPEC, str(tmp_path), load_data)


def test_present_file_is_neither_fetched_nor_written_beside(tmp_path):
  _write(tmp_path / _SPEC.file_name)
  path = downloads.ensure_downloaded(_SPEC, str(tmp_path), load_data=None)
  assert os.listdir(tmp_path) == [os.path.basename(path)] == [_SPEC.file_name]


def test_download_goes_to_the_home_folder_by_default(monkeypatch):
  monkeypatch.setenv('HOME', '/somebody')
  assert downloads.download_dir(None) == '/somebody/.tff'
  assert downloads.download_dir('/x') == '/x'


def _counts_at(tmp_path, content, digest=None):
  """Returns counts whose archive is fetched from a local file."""
  source = tmp_path / 'bucket'
  source.mkdir()
  (source / 'counts.tar.bz2').write_bytes(content)

  class Counts(vocabularies.CountFile):
    origin = (source / 'counts.tar.bz2').as_uri()

  return Counts('counts', digest or hashlib.sha256(content).hexdigest())


def test_counts_arrive_where_tff_puts_them(tmp_path):
  file = _counts_at(tmp_path, b'archive')
  folder = tmp_path / 'cache'
  downloads.ensure_counts(file, str(folder))
  downloads.ensure_counts(file, str(folder))
  arrived = folder / 'datasets' / 'counts.tar.bz2'
  assert arrived.read_bytes() == b'archive'
  vocabularies.check(str(folder), file)


def test_counts_with_another_digest_do_not_arrive(tmp_path):
  file = _counts_at(tmp_path, b'archive', digest='00ff')
  with pytest.raises(ValueError, match='expected SHA-256 00ff, found'):
    downloads.ensure_counts(file, str(tmp_path / 'cache'))
  assert not vocabularies.is_present(str(tmp_path / 'cache'), file)


def test_counts_that_cannot_be_fetched(tmp_path):
  file = _counts_at(tmp_path, b'archive')
  (tmp_path / 'bucket' / 'counts.tar.bz2').unlink()
  with pytest.raises(OSError, match='counts.tar.bz2 could not be downloaded'):
    downloads.ensure_counts(file, str(tmp_path / 'cache'))


def test_present_counts_are_not_fetched(tmp_path):
  file = _counts_at(tmp_path, b'archive', digest='00ff')
  (tmp_path / 'counts').write_bytes(b'the 1')
  downloads.ensure_counts(file, str(tmp_path))
  assert not (tmp_path / 'datasets').exists()
