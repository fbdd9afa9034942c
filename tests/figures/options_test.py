"""Options: what is read, and what is said of wrong ones."""

import argparse
from fractions import Fraction
import os
import pathlib

import pytest

from baselines.figures import best_rates
from baselines.figures import main
from baselines.figures import options as options_lib
from baselines.results import ranking
from baselines.results import runs as runs_lib
from baselines.results import symbols

_COUNT = options_lib.whole(1, 100)


@pytest.mark.parametrize('read, text, expected', [
    (options_lib.positive, '1e-20', 1e-20),
    (options_lib.not_negative, '0', 0.0),
    (options_lib.finite, '-2.5', -2.5),
    (_COUNT, '100', 100),
    (options_lib.rational, '0.1', Fraction(1, 10)),
    (options_lib.rational, '11/10', Fraction(11, 10)),
    (options_lib.rational, '1e-3', Fraction(1, 1000)),
    (options_lib.rational, '2.', Fraction(2)),
    (options_lib.list_of(_COUNT), '1,20', (1, 20)),
])
def test_read(read, text, expected):
  assert read(text) == expected


@pytest.mark.parametrize('read, text, rule', [
    (options_lib.positive, '0', 'above 0'),
    (options_lib.positive, '-1', 'above 0'),
    (options_lib.positive, 'nan', 'above 0'),
    (options_lib.positive, '1e21', 'from 1e-20 to 1e20'),
    (options_lib.not_negative, 'inf', 'from 0 to 1e20'),
    (options_lib.not_negative, 'x', 'from 0 to 1e20'),
    (options_lib.finite, 'nan', 'from -1e20'),
    (_COUNT, '0', 'a whole number from 1 to 100'),
    (_COUNT, '101', 'a whole number from 1 to 100'),
    (_COUNT, '2.5', 'a whole number from 1 to 100'),
    (options_lib.rational, '-0.1', 'not negative'),
    (options_lib.rational, '1/0', 'a quotient'),
    (options_lib.rational, '1/00', 'a quotient'),
    (options_lib.rational, '1e-400000000', 'a quotient'),
    (options_lib.rational, 'nan', 'a quotient'),
    (options_lib.list_of(_COUNT), '1,,2', 'a whole number'),
    (options_lib.list_of(_COUNT), '1,2,1', 'without repetitions'),
])
def test_refused(read, text, rule):
  with pytest.raises(argparse.ArgumentTypeError, match='must be ') as caught:
    read(text)
  assert rule in str(caught.value) and 'found' in str(caught.value)


def _parse(*arguments):
  parser = argparse.ArgumentParser(exit_on_error=False)
  options_lib.add_options(parser, 'figure', 'csv', 'runs')
  if '--runs' not in arguments:
    arguments = (*arguments, '--runs', 'a')
  return parser.parse_args(arguments)


@pytest.mark.parametrize('name', ['a.png', 'b/c.pdf', 'd.SVG'])
def test_known_endings(name):
  options = _parse('--output', name)
  assert options.output == pathlib.Path(name) and options.csv is None


@pytest.mark.parametrize('arguments, message', [
    (('--output', 'a.xyz'), r"must end in one of .png, .pdf, .svg, found 'a.x"),
    (('--output', '.png'), 'must end in one of'),
    (('--output', 'a.png', '--csv', 'a.png'), "must end in .csv, found"),
])
def test_unknown_endings_are_refused(arguments, message):
  with pytest.raises(argparse.ArgumentError, match=message):
    _parse(*arguments)


def test_text_is_markdown():
  parser = argparse.ArgumentParser(exit_on_error=False)
  options_lib.add_options(parser, 'table')
  path = parser.parse_args(['--output', 'b/a.md']).output
  assert path == pathlib.Path('b/a.md')
  with pytest.raises(argparse.ArgumentError, match='must end in .md,'):
    parser.parse_args(['--output', 'a.png'])


def test_home_is_expanded(monkeypatch, tmp_path):
  monkeypatch.setenv('HOME', str(tmp_path))
  assert _parse('--output', '~/a.png').output == tmp_path / 'a.png'


def test_new_folders_are_accepted_and_not_made(tmp_path):
  options = _parse('--output', str(tmp_path / 'b' / 'c' / 'a.png'))
  options_lib.check_outputs(options)
  assert not list(tmp_path.iterdir())


def test_folder_behind_a_file_is_refused(tmp_path):
  # One that may be executed, as a folder may be entered.
  (tmp_path / 'file').touch(mode=0o755)
  target = str(tmp_path / 'file' / 'b' / 'a')
  with pytest.raises(ValueError, match='output must be in a folder'):
    options_lib.check_outputs(_parse('--output', f'{target}.png'))
  with pytest.raises(ValueError, match='csv must be in a folder'):
    options_lib.check_outputs(
        _parse('--output', str(tmp_path / 'a.png'), '--csv', f'{target}.csv')
    )


def test_folder_without_permission_is_refused(tmp_path, monkeypatch):
  monkeypatch.setattr(os, 'access', lambda path, mode: path != tmp_path)
  with pytest.raises(ValueError, match='that can be written to'):
    options_lib.check_outputs(_parse('--output', str(tmp_path / 'b' / 'a.png')))


def test_folder_in_place_of_a_file_is_refused(tmp_path):
  (tmp_path / 'a.png').mkdir()
  with pytest.raises(ValueError, match='must be a file, found the folder'):
    options_lib.check_outputs(_parse('--output', str(tmp_path / 'a.png')))


def test_runs_may_be_given_more_than_once():
  options = _parse('--output', 'a.png', '--runs', 'a', '--runs', 'b')
  assert options.runs == [pathlib.Path('a'), pathlib.Path('b')]


def test_default_is_the_papers_rule():
  assert best_rates.rule_of(_parse_rule()) == ranking.Rule(
      'loss_before_training', 100
  )


def test_rule_may_be_another():
  options = _parse_rule(
      '--selected_by', 'population_loss', '--last_rounds', '7'
  )
  assert best_rates.rule_of(options) == ranking.Rule('population_loss', 7)


@pytest.mark.parametrize(
    'arguments, name',
    [
        (('--last_rounds', '7'), 'last_rounds'),
        (('--selected_by', 'population_loss'), 'selected_by'),
        (('--at_most', '7'), 'at_most'),
    ],
)
def test_option_without_use_is_refused(arguments, name):
  with pytest.raises(ValueError, match=f'{name} would be ignored'):
    options_lib.refuse_ignored(_parse_rule(*arguments, '--select', 'all'))
  options_lib.refuse_ignored(_parse_rule('--select', 'all'))
  options_lib.refuse_ignored(
      _parse_rule(*arguments, '--select', 'best', '--start')
  )


def test_every_option_is_used_and_explained():
  used = {key for figure in main.FIGURES.values() for key in figure.options}
  assert used == set(options_lib.OPTIONS)
  assert all(option.help for option in options_lib.OPTIONS.values())


def test_what_can_be_drawn_and_the_usual_rule_are_those_of_results():
  arguments = options_lib.OPTIONS['quantity'].arguments
  assert arguments['choices'] == tuple(symbols.QUANTITIES)
  text = options_lib.OPTIONS['last_rounds'].help
  assert f'(default: {runs_lib.LAST_ROUNDS})' in text


def _parse_rule(*arguments):
  parser = argparse.ArgumentParser()
  options_lib.add_options(
      parser, 'select', 'selected_by', 'last_rounds', 'start', 'at_most'
  )
  return parser.parse_args(arguments)
