"""Repetitions are found; the paper's rule finds the best eta among rates."""

import math

import pytest

from baselines.results import captions
from baselines.results import folder
from baselines.results import groups as groups_lib
from baselines.results import ranking
from baselines.results import records
from baselines.results import runs as runs_lib
from baselines.settings import experiment
from baselines.settings import record
from tests.results import horizon_cases
from tests.results import rate_cases as cases

_COLUMNS = ['loss_before_training']


def _load(*folders):
  return groups_lib.group_by_rates(
      runs_lib.load_runs(folders), _COLUMNS)


def _rates(groups):
  return [(g.client_learning_rate, g.server_learning_rate) for g in groups]


def test_groups_are_ordered_by_rates_and_decay_comes_last(tmp_path):
  cases.write_all(tmp_path / 'a')
  cases.write_decay(tmp_path / 'a' / '0')
  groups = _load(tmp_path / 'a')
  assert _rates(groups) == [(g, e) for g, e, *_ in cases.RUNS] + [(1.0, 0.1)]
  assert [group.decays for group in groups] == [False] * 6 + [True]
  assert groups[0].task == 'femnist cnn (synthetic)'


def test_repetitions_are_one_group(tmp_path):
  cases.write_all(tmp_path / 'a')
  cases.write_all(tmp_path / 'b', seed=2)
  groups = _load(tmp_path / 'a', tmp_path / 'b')
  assert [len(group.all_runs) for group in groups] == [2] * 6
  assert groups[4].num_diverged == 2 and not groups[4].runs


def test_best_eta_has_the_smallest_loss_at_the_end(tmp_path):
  groups = _load(cases.write_all(tmp_path / 'a'))
  best = ranking.best_groups(groups, ranking.Rule())
  assert _rates(best) == [(0.0, 0.01), (0.1, 0.1), (1.0, 0.1)]
  # A tenth of six rounds is one; the last losses are these.
  assert [ranking.Rule().score(g) for g in best] == [1.0, 0.5, 4.0]


def test_rounds_of_the_rule_are_a_hundred_or_a_tenth(tmp_path):
  run = cases.RUNS[0]
  for rounds in (6, 300, 4000):
    cases.write_run(tmp_path / str(rounds), *run, rounds=rounds)
  counts = {
      g.settings['rounds']: ranking.Rule().num_rounds(g)
      for g in _load(tmp_path)
  }
  assert counts == {6: 1, 300: 30, 4000: 100}
  assert ranking.Rule(last_rounds=7).num_rounds(_load(tmp_path)[-1]) <= 7


def test_mean_of_the_last_rounds_and_of_all_seeds(tmp_path):
  for seed, last, mean in ((1, [3.0, 5.0], 4.0), (2, [7.0, 7.0], 5.5)):
    cases.write_run(
        tmp_path / str(seed), 0.1, 0.1, [10.0] * 18 + last, [0.0] * 20,
        [1.0] * 7, status='finished', rounds=20, seed=seed,
    )
    (group,) = _load(tmp_path)
    assert ranking.Rule().score(group) == mean


def test_last_rounds_end_where_there_is_a_value(tmp_path):
  losses = [10.0] * 17 + [3.0, 5.0, float('nan')]
  cases.write_run(
      tmp_path / 'a', 0.1, 0.1, losses, [0.0] * 20, [1.0] * 7,
      status='finished', rounds=20,
  )
  (group,) = _load(tmp_path)
  assert ranking.Rule().score(group) == 4.0


def test_etas_are_compared_by_the_seeds_that_all_have(tmp_path):
  for eta, seed, last in ((0.1, 1, 5.0), (0.1, 2, 7.0), (0.2, 2, 6.5)):
    cases.write_run(
        tmp_path / f'{eta}-{seed}', 0.1, eta, [9.0] * 9 + [last], [0.0] * 10,
        [1.0] * 4, status='finished', rounds=10, seed=seed,
    )
  # 6 and 6.5 in the mean over all, but 7 and 6.5 with seed 2.
  best = ranking.best_groups(_load(tmp_path), ranking.Rule())
  assert _rates(best) == [(0.1, 0.2)]


def test_other_loss_may_be_looked_at(tmp_path):
  groups = groups_lib.group_by_rates(
      runs_lib.load_runs([cases.write_all(tmp_path / 'a')]), ['population_loss']
  )
  rule = ranking.Rule('population_loss')
  assert [rule.score(g) for g in ranking.best_groups(groups, rule)] == [
      1.0, 0.5, 4.0
  ]


@pytest.mark.parametrize('status', ['diverged', 'running', 'interrupted'])
def test_run_that_did_not_finish_never_wins(tmp_path, status):
  cases.write_run(tmp_path / 'a' / '0', *cases.RUNS[2])
  # Smaller losses, but it has not come to its end.
  cases.write_run(tmp_path / 'a' / '1', *cases.RUNS[3], status=status)
  groups = _load(tmp_path / 'a')
  assert ranking.Rule().score(groups[1]) == math.inf
  best = ranking.best_groups(groups, ranking.Rule())
  assert _rates(best) == [(0.1, 0.01)]


def test_one_diverged_repetition_rules_a_rate_out(tmp_path):
  cases.write_all(tmp_path / 'a')
  cases.write_run(
      tmp_path / 'a' / 'x', *cases.RUNS[3], seed=2, status='diverged'
  )
  best = ranking.best_groups(_load(tmp_path / 'a'), ranking.Rule())
  assert (0.1, 0.01) in _rates(best)


def test_of_equal_scores_the_smaller_eta_wins(tmp_path):
  for eta in (1.0, 0.1, 0.5):
    cases.write_run(tmp_path / str(eta), 0.1, eta, *cases.RUNS[0][2:])
  best = ranking.best_groups(_load(tmp_path), ranking.Rule())
  assert _rates(best) == [(0.1, 0.1)]


def test_decay_is_tuned_apart(tmp_path):
  cases.write_all(tmp_path / 'a')
  cases.write_decay(tmp_path / 'b')
  groups = _load(tmp_path / 'a', tmp_path / 'b')
  best = ranking.best_groups(groups, ranking.Rule())
  assert _rates(best)[-2:] == [(1.0, 0.1)] * 2 and best[-1].decays


def test_rates_are_picked_as_decimals(tmp_path):
  groups = _load(cases.write_all(tmp_path / 'a'))
  found = groups_lib.with_rates(groups, server_learning_rate=0.1 * (1 + 1e-12))
  assert _rates(found) == [(0.0, 0.1), (0.1, 0.1), (1.0, 0.1)]
  found = groups_lib.with_rates(groups, client_learning_rates=[0.0, 1.0])
  assert {g.client_learning_rate for g in found} == {0.0, 1.0}
  assert _rates(groups_lib.with_equal_rates(groups)) == [(0.1, 0.1)]


def test_gammas_asked_for_keep_the_decay(tmp_path):
  cases.write_all(tmp_path / 'a')
  cases.write_decay(tmp_path / 'a' / '0')
  found = groups_lib.with_rates(_load(tmp_path / 'a'), [0.1], 0.1)
  assert [group.decays for group in found] == [False, True]
  assert _rates(found) == [(0.1, 0.1), (1.0, 0.1)]


def test_what_is_not_there_is_refused(tmp_path):
  groups = _load(cases.write_all(tmp_path / 'a'))
  with pytest.raises(ValueError, match='equal to client_learning_rate'):
    groups_lib.with_equal_rates(groups[:1])
  with pytest.raises(ValueError, match='has no test_loss'):
    groups_lib.group_by_rates(
      runs_lib.load_runs([tmp_path / 'a']), ['test_loss'])
  with pytest.raises(ValueError, match='must not repeat a run'):
    _load(tmp_path / 'a', tmp_path / 'a')


@pytest.mark.parametrize('gammas, eta, message', [
    (None, 0.2, r'each server_.* none has 0\.2, they have 0\.01, 0\.1\.'),
    ([0.0, 5.0], None, r'each client_.* none has 5, they have 0, 0\.1, 1\.'),
    ([5.0, 1e-5], None, 'none has 5, 1e-5, they have 0'),
    # Gamma 1 has a run, but not with this eta.
    (
        [0.0, 1.0], 0.3,
        'none with the server_learning_rate asked for has 1, they have 0\\.',
    ),
])
def test_each_rate_that_no_run_has_is_named(tmp_path, gammas, eta, message):
  cases.write_all(tmp_path / 'a')
  if eta == 0.3:
    cases.write_run(tmp_path / 'a' / 'x', 0.0, 0.3, *cases.RUNS[0][2:])
  with pytest.raises(ValueError, match=message):
    groups_lib.with_rates(_load(tmp_path / 'a'), gammas, eta)


def test_gammas_of_runs_that_decay_are_none_to_compare(tmp_path):
  cases.write_decay(tmp_path / 'a')
  with pytest.raises(ValueError, match='has 1, they have rates that decay'):
    groups_lib.with_rates(_load(tmp_path / 'a'), [1.0])


def test_rates_are_named_in_as_many_digits_as_find_them(tmp_path):
  rate = 10**-0.5
  cases.write_run(tmp_path / 'a', 0.1, rate, *cases.RUNS[0][2:])
  groups = _load(tmp_path / 'a')
  with pytest.raises(ValueError, match='none has 0.316228, they') as caught:
    groups_lib.with_rates(groups, server_learning_rate=0.316228)
  told = float(str(caught.value).split()[-1].rstrip('.'))
  assert len(groups_lib.with_rates(groups, server_learning_rate=told)) == 1


def test_runs_that_decay_can_be_left_out(tmp_path):
  cases.write_decay(tmp_path / 'a' / '0')
  decays = _load(tmp_path / 'a')
  with pytest.raises(
      ValueError, match='none among 1 settings, all of LocalUpdateDecay; do it'
  ):
    groups_lib.without_decay(decays, 'do it')
  cases.write_all(tmp_path / 'a')
  assert len(groups_lib.without_decay(_load(tmp_path / 'a'))) == 6


def test_runs_without_rates_are_left_out(tmp_path):
  horizon_cases.write_all(tmp_path / 'b')
  with pytest.raises(ValueError, match='none among 6 runs'):
    _load(tmp_path / 'b')
  cases.write_all(tmp_path / 'a')
  assert len(_load(tmp_path / 'a', tmp_path / 'b')) == 6


def test_best_are_those_of_the_tables_of_a_sweep(tmp_path):
  outcomes = []
  for gamma, eta, losses, norms, _ in cases.RUNS:
    point = experiment.replace_settings(
        experiment.ExperimentConfig(),
        client_learning_rate=gamma, server_learning_rate=eta, rounds=6,
    )
    outcomes.append(_write_as_the_driver(tmp_path, point, losses, norms))
  found = {
      (dict(key)['client_learning_rate'], dict(key)['server_learning_rate'])
      for key in ranking.best_points(outcomes)
  }
  best = ranking.best_groups(_load(tmp_path), ranking.Rule())
  assert set(_rates(best)) == found == {(0.0, 0.01), (0.1, 0.1), (1.0, 0.1)}


def _write_as_the_driver(path, point, losses, norms):
  run = folder.RunFolder(path / record.run_id(point))
  run.path.mkdir()
  run.write_config(point)
  writer = records.MetricsWriter(
      run.metrics_path, records.columns_of(point), []
  )
  writer.write({'round': 0})
  for number, (loss, norm) in enumerate(zip(losses, norms), 1):
    writer.write({
        'round': number, 'loss_before_training': loss, 'update_norm': norm
    })
  writer.close()
  status = 'finished' if len(losses) == 6 else 'diverged'
  run.write_status(status, len(losses))
  return runs_lib.summarize(point, run)


def test_any_run_to_a_horizon_stands_beside_ceal(tmp_path):
  for name in ('ceal', 'fed_avg'):
    horizon_cases.write_run(tmp_path / name, name, horizon_cases.CEAL[0])
  path = horizon_cases.write_run(
      tmp_path / 'x', 'fed_avg', horizon_cases.CEAL[0]
  )
  settings = (path / 'config.json').read_text()
  (path / 'config.json').write_text(settings.replace('fed_avg', 'local_update'))
  cases.write_run(tmp_path / 'y', *cases.RUNS[0])
  groups = groups_lib.group_by_algorithm(
      runs_lib.load_runs(tmp_path), ['cumulative_regret']
  )
  assert captions.name_algorithms(groups) == ['LocalUpdate', 'FedAvg', 'CEAL']
