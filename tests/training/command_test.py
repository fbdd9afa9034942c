"""Errors of a command are one line, and exit codes tell what happened."""

import os
import pathlib
import sys

import pytest

from baselines import command


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


def test_the_code_is_that_of_main_also_if_nobody_reads(monkeypatch):
  reader, writer = os.pipe()
  os.close(reader)
  with open(writer, 'w', encoding='utf-8') as stream:
    monkeypatch.setattr(sys, 'stdout', stream)
    monkeypatch.setattr(sys, 'stderr', stream)

    def main(unused_arguments):
      for _ in range(3):
        command.report('a line')
        print('another', flush=True)
      return command.DIVERGED

    assert command.run_command('name', main) == command.DIVERGED


def test_homes_of_nobody_are_bad_input():
  assert command.user_path('output_dir', 'a/b') == pathlib.Path('a/b')
  with pytest.raises(command.InputError, match='output_dir must be a path'):
    command.user_path('output_dir', '~no-such-user/x')


def test_letters_that_the_output_does_not_have_are_written_as_codes(
    monkeypatch, tmp_path
):
  with open(tmp_path / 'out', 'w', encoding='ascii') as stream:
    monkeypatch.setattr(sys, 'stdout', stream)
    assert command.run_command('name', lambda _: print('\u03b3') or 0) == 0
  assert (tmp_path / 'out').read_text() == '\\u03b3\n'
