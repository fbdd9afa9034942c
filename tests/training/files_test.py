"""Files are whole or not there."""

import os

import pytest

from baselines import files


@pytest.mark.parametrize('content', [b'\x00bytes', 'text'])
def test_content_is_written(tmp_path, content):
  path = tmp_path / 'a'
  files.write_whole(path, content)
  expected = content if isinstance(content, bytes) else content.encode()
  assert path.read_bytes() == expected
  assert os.listdir(tmp_path) == ['a']


def test_old_content_stays_until_the_new_one_is_whole(tmp_path, monkeypatch):
  path = tmp_path / 'a'
  files.write_whole(path, 'old')

  def fail(*unused):
    raise OSError('disk full')

  monkeypatch.setattr(os, 'fsync', fail)
  with pytest.raises(OSError, match='disk full'):
    files.write_whole(path, 'new')
  assert path.read_text() == 'old'
