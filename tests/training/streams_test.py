"""Whoever reads may go; the work goes on."""

import errno
import os
import subprocess
import sys

import pytest

from baselines import command


def test_what_is_read_arrives(capsys):
  with command.patient():
    print('one')
    print('two', file=sys.stderr)
    assert not sys.stdout.isatty()
  assert capsys.readouterr() == ('one\n', 'two\n')


def test_what_is_not_read_is_dropped(monkeypatch):
  reader, writer = os.pipe()
  with open(writer, 'w', encoding='utf-8') as stream:
    monkeypatch.setattr(sys, 'stdout', stream)
    before = sys.stdout
    with command.patient():
      print('seen', flush=True)
      assert os.read(reader, 99) == b'seen\n'
      os.close(reader)
      for _ in range(3):
        print('dropped', flush=True)
      print('buffered')
    assert sys.stdout is before


@pytest.mark.parametrize('number', [errno.EIO, errno.ENOSPC, errno.EPIPE])
def test_what_cannot_be_written_is_dropped(monkeypatch, number, tmp_path):
  class Failing:

    def __init__(self):
      self.file = open(tmp_path / 'out', 'w', encoding='utf-8')
      self.fileno = self.file.fileno

    def write(self, text):
      raise OSError(number, 'no')

    flush = write

  stream = Failing()
  stream.flush = lambda: stream.write('')
  monkeypatch.setattr(sys, 'stderr', stream)
  with command.patient():
    print('lost', file=sys.stderr, flush=True)
  stream.file.close()


_CLOSED = """
import os, sys
from baselines import command as streams
streams.open_missing()
print('out', flush=True)
print('err', file=sys.stderr, flush=True)
with open(sys.argv[1], 'w') as stream:
  stream.write(str(stream.fileno()))
"""


@pytest.mark.parametrize('closed', ['>&-', '2>&-', '<&- >&- 2>&-'])
def test_streams_that_are_closed_are_opened(tmp_path, closed):
  subprocess.run(
      ['bash', '-c', f'"$0" -c "$1" "$2" {closed}', sys.executable, _CLOSED,
       str(tmp_path / 'file')], check=True, capture_output=True,
  )
  # No file has taken the place of a stream.
  assert int((tmp_path / 'file').read_text()) > 2
