"""The best eta of each gamma, as a table and as flags."""

import math

import pytest

from baselines.figures import best_rates
from baselines.results import groups as groups_lib
from baselines.results import ranking
from baselines.results import runs as runs_lib
from tests.results import rate_cases as cases


def _flag(gamma, eta):
  return (
      f'--sweep_client_learning_rates={gamma} '
      f'--sweep_server_learning_rates={eta}'
  )


_RULE = ranking.Rule()


def _load(*folders):
  return groups_lib.group_by_rates(
      runs_lib.load_runs(folders), ['loss_before_training'])


def test_a_row_for_each_gamma(tmp_path):
  table = best_rates.rates_table(
      _load(cases.write_all(tmp_path / 'a')), _RULE
  )
  assert list(table.columns) == [
      'task', 'client_learning_rate', 'server_learning_rate', 'score',
      'at_edge', 'num_rates', 'num_diverged', 'num_unfinished',
  ]
  assert table.client_learning_rate.tolist() == [0.0, 0.1, 1.0]
  assert table.server_learning_rate.tolist() == [0.01, 0.1, 0.1]
  assert table.score.tolist() == [1.0, 0.5, 4.0]
  assert table.num_rates.tolist() == [2, 2, 2]
  assert table.num_diverged.tolist() == [0, 0, 1]
  assert table.at_edge.all()


def test_edge_is_the_smallest_or_the_largest_of_several(tmp_path):
  losses = {0.01: (3,) * 6, 0.1: (1,) * 6, 1.0: (2,) * 6}
  for eta, values in losses.items():
    cases.write_run(
        tmp_path / str(eta), 0.0, eta, values, *cases.RUNS[0][3:]
    )
  (row,) = best_rates.rates_table(_load(tmp_path), _RULE).itertuples()
  assert row.server_learning_rate == 0.1 and not row.at_edge


def test_single_rate_is_an_edge(tmp_path):
  table = best_rates.rates_table(
      _load(cases.write_run(tmp_path / 'a', *cases.RUNS[0])), _RULE
  )
  assert table.at_edge.tolist() == [True] and table.num_rates.tolist() == [1]
  assert best_rates.rates_texts(table).values.tolist() == [['0', '0.01*']]


@pytest.mark.parametrize('status, is_edge', [
    ('running', True), ('interrupted', True), ('diverged', False),
    ('finished', False),
])
def test_rate_whose_run_is_still_to_end_bounds_nothing(
    tmp_path, status, is_edge
):
  for eta, loss in ((0.01, 3), (0.1, 1)):
    cases.write_run(
        tmp_path / str(eta), 0.0, eta, (loss,) * 6, *cases.RUNS[0][3:]
    )
  cases.write_run(
      tmp_path / '1', 0.0, 1.0, (2,) * 6, *cases.RUNS[0][3:], status=status
  )
  (row,) = best_rates.rates_table(_load(tmp_path), _RULE).itertuples()
  assert (row.server_learning_rate, row.at_edge) == (0.1, is_edge)
  assert row.num_rates == 3


def test_gamma_without_a_finished_run_has_no_rate(tmp_path):
  cases.write_run(tmp_path / '0', *cases.RUNS[4])
  cases.write_run(tmp_path / '1', *cases.RUNS[0], status='running')
  table = best_rates.rates_table(_load(tmp_path), _RULE)
  assert [math.isnan(v) for v in table.server_learning_rate] == [True, True]
  assert table.at_edge.tolist() == [False, False]
  texts = best_rates.rates_texts(table)
  assert texts.values.tolist() == [['0', 'not finished'], ['1', 'diverged']]


def test_texts_have_a_column_for_each_task(tmp_path):
  cases.write_all(tmp_path / 'a')
  cases.write_run(
      tmp_path / 'b', 0.1, 10**-0.5, *cases.RUNS[0][2:],
      task={'task': 'cifar100'},
  )
  table = best_rates.rates_table(_load(tmp_path / 'a', tmp_path / 'b'), _RULE)
  texts = best_rates.rates_texts(table)
  assert list(texts.columns) == [
      'gamma', 'femnist cnn (synthetic)', 'cifar100 cnn (synthetic)'
  ]
  assert texts.values.tolist() == [
      ['0', '0.01*', '-'], ['0.1', '0.1*', '0.3162*'], ['1', '0.1*', '-']
  ]


def test_other_settings_make_columns_of_their_own(tmp_path):
  cases.write_all(tmp_path / 'a')
  cases.write_all(tmp_path / 'b', rounds=60, status='finished')
  table = best_rates.rates_table(_load(tmp_path / 'a', tmp_path / 'b'), _RULE)
  assert set(table.task) == {
      'femnist cnn (synthetic), rounds 6', 'femnist cnn (synthetic), rounds 60'
  }
  assert len(table) == 6


def test_notes_name_rule_and_runs(tmp_path):
  groups = _load(cases.write_all(tmp_path / 'a'))
  rule, runs = best_rates.rates_notes(groups, _RULE)
  assert 'loss_before_training over the last rounds: 100,' in rule
  assert (
      '*: the smallest or the largest that was compared, or the only one, so '
      'the best one may lie beyond.'
  ) in rule
  assert runs == (
      'Of femnist cnn (synthetic); M 2, B 4, Theta 1:2, server sgd; 6 runs of '
      '6 rounds; sampling seed 1; 1 diverged, not drawn; eta 0.01, 0.1.'
  )


def test_best_eta_of_each_gamma_is_a_variant(tmp_path):
  text = best_rates.best_flags(_load(cases.write_all(tmp_path / 'a')), _RULE)
  comment, flag = text.splitlines()
  assert comment.startswith('# ')
  assert flag == '--sweep_variants=' + ';'.join(
      [_flag(0.0, 0.01), _flag(0.1, 0.1), _flag(1.0, 0.1)]
  )


def test_start_is_the_largest_gamma_that_finished(tmp_path):
  groups = _load(cases.write_all(tmp_path / 'a'))

  def start(*largest):
    return best_rates.start_flags(groups, _RULE, *largest).splitlines()[1]

  assert start() == f'--sweep_variants={_flag(1.0, 0.1)}'
  assert start(0.5) == f'--sweep_variants={_flag(0.1, 0.1)}'
  # All etas of the largest gamma have diverged.
  groups = groups[:5]
  assert start() == f'--sweep_variants={_flag(0.1, 0.1)}'


def test_rates_keep_all_their_digits(tmp_path):
  rate = 10**-1.5
  cases.write_run(tmp_path / 'a', 0.1, rate, *cases.RUNS[0][2:])
  assert repr(rate) in best_rates.best_flags(_load(tmp_path / 'a'), _RULE)


def test_no_finished_run_is_refused(tmp_path):
  groups = _load(cases.write_all(tmp_path / 'a'))
  with pytest.raises(ValueError, match='must leave a gamma .* found -1'):
    best_rates.start_flags(groups, _RULE, -1.0)
  with pytest.raises(ValueError, match='has finished, found none among 1'):
    best_rates.best_flags(groups[4:5], _RULE)


def test_runs_that_differ_in_more_than_rates_are_refused(tmp_path):
  cases.write_all(tmp_path / 'a')
  cases.write_all(tmp_path / 'b', clients_per_round=3)
  groups = _load(tmp_path / 'a', tmp_path / 'b')
  for write in (best_rates.best_flags, best_rates.start_flags):
    with pytest.raises(
        ValueError, match='one best eta for each gamma, .* clients_per_round'
    ):
      write(groups, _RULE)
