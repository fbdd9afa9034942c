"""The best rates as flags: what a sweep would read."""

import pytest

from baselines.figures import rate_flags
from baselines.figures import rate_runs
from tests.figures import rate_cases as cases

_RULE = rate_runs.Rule()


def _load(*folders):
  return rate_runs.load_groups(folders, ['loss_before_training'])


def _flag(gamma, eta):
  return (
      f'--sweep_client_learning_rates={gamma} '
      f'--sweep_server_learning_rates={eta}'
  )


def test_best_eta_of_each_gamma_is_a_variant(tmp_path):
  text = rate_flags.best_flags(_load(cases.write_all(tmp_path / 'a')), _RULE)
  comment, flag = text.splitlines()
  assert comment.startswith('# ')
  assert flag == '--sweep_variants=' + ';'.join(
      [_flag(0.0, 0.01), _flag(0.1, 0.1), _flag(1.0, 0.1)]
  )


def test_start_is_the_largest_gamma_that_finished(tmp_path):
  groups = _load(cases.write_all(tmp_path / 'a'))

  def start(*largest):
    return rate_flags.start_flags(groups, _RULE, *largest).splitlines()[1]

  assert start() == f'--sweep_variants={_flag(1.0, 0.1)}'
  assert start(0.5) == f'--sweep_variants={_flag(0.1, 0.1)}'
  # All etas of the largest gamma have diverged.
  groups = groups[:5]
  assert start() == f'--sweep_variants={_flag(0.1, 0.1)}'


def test_rates_keep_all_their_digits(tmp_path):
  rate = 10**-1.5
  cases.write_run(tmp_path / 'a', 0.1, rate, *cases.RUNS[0][2:])
  assert repr(rate) in rate_flags.best_flags(_load(tmp_path / 'a'), _RULE)


def test_no_finished_run_is_refused(tmp_path):
  groups = _load(cases.write_all(tmp_path / 'a'))
  with pytest.raises(ValueError, match='must leave a gamma .* found -1'):
    rate_flags.start_flags(groups, _RULE, -1.0)
  with pytest.raises(ValueError, match='has finished, found none among 1'):
    rate_flags.best_flags(groups[4:5], _RULE)


def test_runs_that_differ_in_more_than_rates_are_refused(tmp_path):
  cases.write_all(tmp_path / 'a')
  cases.write_all(tmp_path / 'b', clients_per_round=3)
  groups = _load(tmp_path / 'a', tmp_path / 'b')
  for write in (rate_flags.best_flags, rate_flags.start_flags):
    with pytest.raises(
        ValueError, match='one best eta for each gamma, .* clients_per_round'
    ):
      write(groups, _RULE)
