"""Errors of a command are one line, and exit codes tell what happened."""

import sys

import pytest

from baselines.experiment import command


@pytest.fixture(autouse=True)
def _arguments(monkeypatch):
  monkeypatch.setattr(sys, 'argv', ['command', '--flag'])
  monkeypatch.setattr(
      sys.stdout, 'reconfigure', lambda **_: None, raising=False
  )


def _raising(error):
  def main(arguments):
    assert arguments == ['--flag']
    raise error

  return main


def test_exit_code_of_main():
  assert command.run_command('name', lambda arguments: 3) == command.DIVERGED


def test_input_error_is_one_line(capsys):
  error = command.InputError('rate must be\n  positive')
  assert command.run_command('name', _raising(error)) == command.BAD_INPUT
  assert capsys.readouterr().err == 'name: error: rate must be positive\n'


def test_help_goes_to_standard_output(capsys):
  error = command.HelpRequested('all flags')
  assert command.run_command('name', _raising(error)) == command.FINISHED
  assert capsys.readouterr() == ('all flags\n', '')


def test_second_interrupt_has_its_code(capsys):
  error = KeyboardInterrupt()
  assert command.run_command('name', _raising(error)) == command.STOPPED
  assert 'stopped at once' in capsys.readouterr().err


def test_error_without_message_is_named():
  assert command.one_line(MemoryError()) == 'MemoryError'


def test_reader_that_has_gone_is_no_error(monkeypatch, tmp_path):
  with open(tmp_path / 'output', 'w', encoding='utf-8') as stream:
    monkeypatch.setattr(sys, 'stdout', stream)
    code = command.run_command('name', _raising(BrokenPipeError()))
    print('lost', flush=True)
  assert code == command.FINISHED
  assert not (tmp_path / 'output').read_text()
