"""Options of the rule, and what they are made into."""

import argparse

import pandas as pd
import pytest

from baselines.figures import rate_options
from baselines.figures import rate_runs
from tests.baselines.figures import rate_cases as cases


def _parse(*arguments):
  parser = argparse.ArgumentParser()
  rate_options.add_rule_options(parser)
  rate_options.add_server_rate_option(parser)
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
  with pytest.raises(ValueError, match='do not decay, found none among 1'):
    rate_options.constant_groups(options)


def test_names_of_lines_become_plain_text():
  table = pd.DataFrame({'line': [r'$\gamma=0$'], 'mean': [1.5]})
  plain = rate_options.with_plain_names(table)
  assert plain.to_dict('list') == {'line': ['gamma=0'], 'mean': [1.5]}
  assert rate_options.with_plain_names(table.iloc[:0]).empty
