"""Divergence is a function of the rows; signals ask for a stop."""

import os
import signal
import subprocess
import sys
import time

import pytest

from baselines.results import records
from baselines.settings import algorithms
from baselines.settings import experiment
from baselines.training import stopping


def _row(values):
  settings = experiment.ExperimentConfig(
    experiment.TaskConfig('scaled_regression'), algorithms.FedAvgConfig()
  )
  return records.format_row(values, records.columns_of(settings))


def _observe(factor, *losses, column='loss_before_training'):
  monitor = stopping.DivergenceMonitor(factor)
  found = None
  for r, loss in enumerate(losses):
    assert found is None
    found = monitor.observe(_row({'round': r, column: loss}))
  return found


@pytest.mark.parametrize('column', ['loss_before_training', 'population_loss'])
@pytest.mark.parametrize('last, message', [
    (float('nan'), 'is nan'),
    (float('inf'), 'is inf'),
    (20.5, r'is 20.5, more than 10 times its first value 2'),
])
def test_diverged(column, last, message):
  found = _observe(10.0, None, 2.0, 20.0, last, column=column)
  assert column in found and message in found.replace(column + ' ', '', 1)


@pytest.mark.parametrize(
    'column', ['update_norm', 'cumulative_regret', 'last_regret']
)
def test_norm_or_regret_that_is_not_finite_is_divergence(column):
  found = _observe(10.0, 1.0, 1e30, float('inf'), column=column)
  assert found == f'{column} is inf'


def test_no_limit_but_infinity():
  assert _observe(0.0, 1.0, 1e30) is None
  assert _observe(0.0, 1.0, float('inf')) is not None


@pytest.mark.parametrize('first', [0.0, -1.0])
def test_first_value_that_is_not_positive_counts_as_one(first):
  assert _observe(2.0, first, 1.5, 2.0) is None
  found = _observe(2.0, first, 1.5, 5.0)
  assert found == 'loss_before_training is 5, more than 2 times 1'


def test_empty_loss_is_no_divergence():
  assert _observe(2.0, 1.0, None, 1.5) is None


def test_each_loss_has_its_own_first_value():
  monitor = stopping.DivergenceMonitor(10.0)
  first = {'round': 0, 'population_loss': 0.1}
  assert monitor.observe(_row(first)) is None
  second = {'round': 1, 'loss_before_training': 5.0, 'population_loss': 0.9}
  assert monitor.observe(_row(second)) is None


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_signals_within_a_second_are_one_request(number, capsys, monkeypatch):
  heard, now = [], time.monotonic()
  monkeypatch.setattr(time, 'monotonic', lambda: now)
  before = signal.signal(number, lambda *args: heard.append(args[0]))
  try:
    with stopping.Interruption() as interruption:
      assert not interruption.requested
      for _ in range(3):
        os.kill(os.getpid(), number)
        assert interruption.requested and not heard
      now += 1.5
      os.kill(os.getpid(), number)
      assert heard == [number]
  finally:
    signal.signal(number, before)
  assert capsys.readouterr().err.count(number.name) == 1


def test_handlers_are_given_back_without_a_signal():
  before = signal.getsignal(signal.SIGTERM)
  with stopping.Interruption():
    assert signal.getsignal(signal.SIGTERM) is not before
  assert signal.getsignal(signal.SIGTERM) is before


_BUSY = """
import hashlib
from baselines.training import stopping

with stopping.Interruption():
  print('ready', flush=True)
  hashlib.pbkdf2_hmac('sha256', b'', b'', 10 ** 9)  # No handler can run.
"""


def test_a_second_signal_ends_a_process_that_runs_no_handler():
  process = subprocess.Popen(
      [sys.executable, '-c', _BUSY], text=True,
      stdout=subprocess.PIPE, stderr=subprocess.PIPE,
  )
  assert process.stdout.readline() == 'ready\n'
  process.send_signal(signal.SIGTERM)
  assert process.stderr.readline().startswith('SIGTERM: stopping after')
  process.send_signal(signal.SIGTERM)  # The same request.
  time.sleep(2.5)
  assert process.poll() is None
  process.send_signal(signal.SIGINT)
  assert process.wait(timeout=30) == 130
  process.stdout.close()
  process.stderr.close()
