"""Options of the rule, and what they are made into."""

import argparse

import pandas as pd
import pytest

from baselines.figures import rate_options
from baselines.figures import rate_runs
from tests.figures import rate_cases as cases


def _parse(*arguments):
  parser = argparse.ArgumentParser()
  rate_options.add_rule_options(parser)
  rate_options.add_server_rate_option(parser)
  rate_options.add_decay_option(parser)
  return parser.parse_args(arguments)


def test_default_is_the_papers_rule():
  rule = rate_options.rule_of(_parse())
  assert rule == rate_runs.Rule('loss_before_training', 100)


def test_rule_may_be_another():
  options = _parse('--selected_by', 'population_loss', '--last_rounds', '7')
  assert rate_options.rule_of(options) == rate_runs.Rule('population_loss', 7)


@pytest.mark.parametrize(
    'arguments, name',
    [
        (('--last_rounds', '7'), 'last_rounds'),
        (('--selected_by', 'population_loss'), 'selected_by'),
    ],
)
def test_rule_without_use_is_refused(arguments, name):
  with pytest.raises(ValueError, match=f'{name} would be ignored: why, found'):
    rate_options.refuse_rule(_parse(*arguments), 'why')
  rate_options.refuse_rule(_parse(), 'why')


def test_runs_that_decay_are_left_out(tmp_path):
  cases.write_all(tmp_path / 'a')
  options = _parse()
  options.runs = [tmp_path / 'a', cases.write_decay(tmp_path / 'b')]
  assert len(rate_options.constant_groups(options)) == 6
  options.runs = [tmp_path / 'b']
  with pytest.raises(
      ValueError, match='none among 1 settings, all of LocalUpdateDecay.$'
  ):
    rate_options.constant_groups(options)


def test_runs_that_decay_are_shown_if_asked_for(tmp_path):
  cases.write_all(tmp_path / 'a')
  cases.write_decay(tmp_path / 'b')

  def decays(*arguments, folders=('a', 'b')):
    options = _parse(*arguments)
    options.runs = [tmp_path / folder for folder in folders]
    groups = rate_options.shown_groups(options, ['update_norm'])
    return [group.decays for group in groups]

  assert decays() == [False] * 6
  assert decays('--decay') == [False] * 6 + [True]
  assert decays('--decay', folders='b') == [True]
  with pytest.raises(ValueError, match='Decay; give --decay to draw them.$'):
    decays(folders='b')
  with pytest.raises(ValueError, match='found none among 6 settings'):
    decays('--decay', folders='a')


def test_names_of_lines_become_plain_text():
  table = pd.DataFrame({'line': [r'$\gamma=0$'], 'mean': [1.5]})
  plain = rate_options.with_plain_names(table)
  assert plain.to_dict('list') == {'line': ['gamma=0'], 'mean': [1.5]}
  assert rate_options.with_plain_names(table.iloc[:0]).empty
