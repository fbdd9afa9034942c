"""Whoever reads may go; the work goes on."""

import os
import sys

from baselines import streams


def test_what_is_read_arrives(capsys):
  with streams.patient():
    print('one')
    print('two', file=sys.stderr)
    assert not sys.stdout.isatty()
  assert capsys.readouterr() == ('one\n', 'two\n')


def test_what_is_not_read_is_dropped(monkeypatch):
  reader, writer = os.pipe()
  with open(writer, 'w', encoding='utf-8') as stream:
    monkeypatch.setattr(sys, 'stdout', stream)
    before = sys.stdout
    with streams.patient():
      print('seen', flush=True)
      assert os.read(reader, 99) == b'seen\n'
      os.close(reader)
      for _ in range(3):
        print('dropped', flush=True)
      print('buffered')
    assert sys.stdout is before
