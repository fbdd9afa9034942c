"""Progress: few plain lines into a file, a bar on a terminal."""

import io
import sys

from baselines.experiment import progress
from baselines.experiment import records


def _rows(rounds):
  for r in range(rounds + 1):
    values = {'round': r, 'loss_before_training': 2.0 / (r + 1) if r else None}
    if r % 50 == 0:
      values['population_loss'] = 1.0 / (r + 1)
    yield records.format_row(values)


def test_plain_lines_come_at_every_tenth(capsys):
  shown = progress.Progress(100, 0, 'run')
  for row in _rows(100):
    shown.update(row)
  shown.close()
  lines = capsys.readouterr().err.splitlines()
  assert len(lines) == 11
  assert lines[0] == 'run: round 0/100, f(x) 1'
  assert lines[5].startswith('run: round 50/100, loss 0.03922, f(x) 0.01961, ')
  assert lines[5].endswith('s left')


def test_lines_also_come_after_five_seconds(capsys, monkeypatch):
  now = [0.0]
  monkeypatch.setattr(progress.time, 'monotonic', lambda: now[0])
  shown = progress.Progress(1000, 0, 'run')
  for row in _rows(30):
    shown.update(row)
    now[0] += 1.0
  lines = capsys.readouterr().err.splitlines()
  assert [line.split(',')[0] for line in lines[:3]] == [
      'run: round 0/1000', 'run: round 5/1000', 'run: round 10/1000',
  ]
  assert lines[2].endswith('990 s left')


class _Terminal(io.StringIO):

  def isatty(self):
    return True


def test_terminal_gets_a_bar_with_losses(monkeypatch):
  terminal = _Terminal()
  monkeypatch.setattr(sys, 'stderr', terminal)
  shown = progress.Progress(50, 0, 'run')
  for row in _rows(50):
    shown.update(row)
  shown.report('client work ran on CPU:0')
  shown.close()
  text = terminal.getvalue()
  assert '50/50' in text and 'loss=0.03922' in text and 'f(x)=0.01961' in text
  assert 'client work ran on CPU:0\n' in text
