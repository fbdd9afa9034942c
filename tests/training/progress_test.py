"""Progress: few plain lines into a file, a bar on a terminal."""

import io
import sys
import types

from baselines import command
from baselines.results import records
from baselines.settings import algorithms
from baselines.settings import experiment
from baselines.training import recorder

_COLUMNS = records.columns_of(experiment.ExperimentConfig())


def _rows(rounds):
  for r in range(rounds + 1):
    values = {'round': r, 'loss_before_training': 2.0 / (r + 1) if r else None}
    if r % 50 == 0:
      values['population_loss'] = 1.0 / (r + 1)
    yield records.format_row(values, _COLUMNS)


def test_plain_lines_come_at_every_tenth(capsys):
  shown = recorder.Progress(100, 0, 'run')
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
  monkeypatch.setattr(recorder.time, 'monotonic', lambda: now[0])
  shown = recorder.Progress(1000, 0, 'run')
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
  shown = recorder.Progress(50, 0, 'run')
  for row in _rows(50):
    shown.update(row)
  shown.report('client work ran on CPU:0')
  shown.close()
  text = terminal.getvalue()
  assert '50/50' in text and 'loss=0.03922' in text and 'f(x)=0.01961' in text
  assert 'client work ran on CPU:0\n' in text


def _queries(times):
  settings = experiment.ExperimentConfig(
      experiment.TaskConfig('scaled_regression'), algorithms.CealConfig()
  )
  columns = records.columns_of(settings)
  for r, time in enumerate(times):
    yield records.format_row({
        'round': r, 'time_used': time, 'cumulative_regret': 0.5 * (time or 0),
    }, columns)


def test_run_with_a_horizon_is_counted_in_queries(capsys):
  shown = recorder.Progress(200, 0, 'run', 'time_used')
  # Rounds of unequal length: 15 / 200 is not yet a tenth.
  for row in _queries([None, 5, 15, 60, 61, 150, 200]):
    shown.update(row)
  lines = capsys.readouterr().err.splitlines()
  assert [line.partition(',')[0] for line in lines] == [
      'run: query 0/200', 'run: query 60/200', 'run: query 150/200',
      'run: query 200/200',
  ]
  assert lines[0] == 'run: query 0/200, regret 0'
  assert ', regret 75, ' in lines[2]


def test_time_left_goes_by_the_queries(capsys, monkeypatch):
  now = [0.0]
  monkeypatch.setattr(recorder.time, 'monotonic', lambda: now[0])
  shown = recorder.Progress(1000, 0, 'run', 'time_used')
  for row in _queries([None, 100, 300]):
    shown.update(row)
    now[0] += 20.0
  # 200 queries in 20 s, the first round aside: 700 take 70.
  assert capsys.readouterr().err.splitlines()[-1].endswith('70 s left')


def test_bar_is_moved_by_queries(monkeypatch):
  terminal = _Terminal()
  monkeypatch.setattr(sys, 'stderr', terminal)
  shown = recorder.Progress(200, 0, 'run', 'time_used')
  for row in _queries([None, 5, 60, 200]):
    shown.update(row)
  shown.close()
  text = terminal.getvalue()
  assert '200/200' in text and 'regret=100' in text


class _Shell:
  config = {'IPKernelApp': {}}


def test_notebook_gets_a_bar_though_it_is_no_terminal(monkeypatch, capsys):
  module = types.ModuleType('IPython')
  module.get_ipython = lambda: _Shell
  monkeypatch.setitem(sys.modules, 'IPython', module)
  shown = recorder.Progress(50, 0, 'run')
  for row in _rows(50):
    shown.update(row)
  shown.close()
  text = capsys.readouterr().err
  assert '50/50' in text and 'loss=0.0392' in text and '\r' in text
  assert 'round 5/50' not in text


def test_silence_holds_for_bars_and_lines(monkeypatch, capsys):
  terminal = _Terminal()
  for stream in (terminal, sys.stderr):
    monkeypatch.setattr(sys, 'stderr', stream)
    with command.silence():
      shown = recorder.Progress(50, 0, 'run')
      for row in _rows(50):
        shown.update(row)
      shown.report('client work ran on CPU:0')
      shown.close()
  assert not terminal.getvalue() and not capsys.readouterr().err
  command.report('heard again')
  assert capsys.readouterr().err == 'heard again\n'
