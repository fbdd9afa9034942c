"""Runs may be in several folders."""

import argparse
import pathlib

import pytest

from baselines.figures import run_options


def test_runs_may_be_given_more_than_once():
  parser = argparse.ArgumentParser(exit_on_error=False)
  run_options.add_runs_option(parser)
  options = parser.parse_args(['--runs', 'a', '--runs', 'b'])
  assert options.runs == [pathlib.Path('a'), pathlib.Path('b')]


def test_runs_must_be_given(capsys):
  parser = argparse.ArgumentParser()
  run_options.add_runs_option(parser)
  with pytest.raises(SystemExit):
    parser.parse_args([])
  assert '--runs' in capsys.readouterr().err
