"""Repetitions are found, named and described."""

import pytest

from baselines.figures import horizon_runs
from tests.figures import horizon_cases as cases

_COLUMNS = ('cumulative_regret',)


def _load(*folders):
  return horizon_runs.load_groups(folders, _COLUMNS)


def _names(groups, **ignored):
  return horizon_runs.name_groups(groups, **ignored)


def test_seeds_are_repetitions_and_algorithms_are_in_the_papers_order(tmp_path):
  groups = _load(cases.write_all(tmp_path))
  assert [len(group.runs) for group in groups] == [2, 2, 2]
  assert _names(groups) == ['FedAvg', 'FedPAQ', 'CEAL']
  assert groups[0].task == 'scaled_regression row_sum (synthetic)'


def test_tasks_are_in_the_order_in_which_they_are_given(tmp_path):
  folders = [tmp_path / 'b', tmp_path / 'a']
  cases.write_all(folders[0], task={'task': 'z'})
  cases.write_all(folders[1], task={'task': 'y'})
  tasks = [group.task[0] for group in _load(*folders)]
  assert tasks == ['z'] * 3 + ['y'] * 3
  assert [g.task[0] for g in _load(*folders[::-1])] == ['y'] * 3 + ['z'] * 3


def test_names_say_what_tells_groups_apart(tmp_path):
  cases.write_all(tmp_path)
  cases.write_run(
      tmp_path / 'a', 'ceal', cases.CEAL[0], step_size=0.25, code='elias_gamma'
  )
  groups = _load(tmp_path)
  assert _names(groups) == [
      'FedAvg', 'FedPAQ', 'CEAL, code elias_gamma, step_size 0.25',
      'CEAL, code signed_unary, step_size 0.5',
  ]
  assert _names(groups, ignored=['code'])[2:] == [
      'CEAL, step_size 0.25', 'CEAL, step_size 0.5'
  ]


def test_experiment_is_named_where_algorithms_differ_in_it(tmp_path):
  cases.write_run(tmp_path / 'a', 'ceal', cases.CEAL[0], run={'batch_size': 4})
  cases.write_run(tmp_path / 'b', 'fed_avg', cases.FED_AVG[0], horizon=50)
  assert _names(_load(tmp_path)) == [
      'FedAvg, batch_size 1, horizon 50', 'CEAL, batch_size 4, horizon 100'
  ]


def test_experiments_agree_whatever_changes_no_result(tmp_path):
  fields = [
      {}, {'rounds_per_evaluation': 5}, {'sampling_seed': 9}, {'batch_size': 2}
  ]
  keys = []
  for i, run in enumerate(fields):
    cases.write_run(tmp_path / f'{i}', 'ceal', cases.CEAL[0], run=run)
    keys.append(_load(tmp_path / f'{i}')[0].experiment)
  assert keys[0] == keys[1] == keys[2] != keys[3]
  cases.write_run(tmp_path / '4', 'ceal', cases.CEAL[0], horizon=50)
  assert _load(tmp_path / '4')[0].experiment != keys[0]


def test_description_is_complete(tmp_path):
  groups = _load(cases.write_all(tmp_path))
  assert '; '.join(horizon_runs.describe(groups)) == (
      'task scaled_regression row_sum (synthetic); T = 100; mean of 2 runs '
      'each; sampling seeds 1-2; data seeds 1-2'
  )


def test_description_counts_and_says_what_is_left_out(tmp_path):
  cases.write_all(tmp_path, regret_every=25)
  for seed, status in ((7, 'finished'), (4, 'diverged'), (5, 'interrupted')):
    cases.write_run(
        tmp_path / f'x{seed}', 'ceal', cases.CEAL[0], seed=seed, status=status,
        regret_every=25,
    )
  groups = _load(tmp_path)
  assert len(groups[2].runs) == 3 and len(groups[2].all_runs) == 5
  assert horizon_runs.describe(groups)[2:] == [
      'mean of 2-3 runs each', 'sampling seeds 1-2, 7',
      'data seeds 1-2, 7',
      'f evaluated at the middle of every 25 queries of clients that move '
      'between queries',
      'diverged and left out: 1 of 5 CEAL',
      'unfinished and left out: 1 of 5 CEAL',
  ]


def test_run_that_failed_at_once_needs_no_columns(tmp_path):
  cases.write_all(tmp_path)
  failed = cases.write_run(tmp_path / 'x', 'ceal', (), seed=3, status='failed')
  (failed / 'metrics.csv').unlink()
  assert horizon_runs.describe(_load(tmp_path))[-1] == (
      'unfinished and left out: 1 of 3 CEAL'
  )


def test_repeated_runs_count_as_one_that_has_finished(tmp_path):
  for name, status in (('a', 'failed'), ('b', 'finished'), ('c', 'finished')):
    cases.write_run(tmp_path / name, 'ceal', cases.CEAL[0], status=status)
  cases.write_run(tmp_path / 'd', 'ceal', cases.CEAL[1], seed=2)
  (group,) = _load(tmp_path, tmp_path)
  assert [run.path.name for run in group.all_runs] == ['b', 'd']


def test_several_horizons_and_intervals_are_all_named(tmp_path):
  for i, (horizon, every) in enumerate(((500, 25), (2000, 1))):
    cases.write_run(
        tmp_path / f'{i}', 'fed_avg', cases.FED_AVG[0], horizon=horizon,
        regret_every=every,
    )
  said = horizon_runs.describe(_load(tmp_path))
  assert said[1] == 'T = 500, 2000'
  assert 'every 1 or 25 queries' in said[4]


def test_each_task_is_described(tmp_path):
  cases.write_all(tmp_path / 'a')
  cases.write_run(
      tmp_path / 'b', 'ceal', cases.CEAL[0], task={'model': 'row'}, horizon=50
  )
  groups = _load(tmp_path / 'a', tmp_path / 'b')
  assert horizon_runs.describe_tasks(groups) == [
      'Runs: task scaled_regression row_sum (synthetic); T = 100; mean of 2 '
      'runs each; sampling seeds 1-2; data seeds 1-2.',
      'Runs: task scaled_regression row (synthetic); T = 50; mean of 1 run '
      'each; sampling seeds 1.',
  ]
  with pytest.raises(ValueError, match=r'row \(synthetic\) and scaled_regr'):
    horizon_runs.check_one_task(groups)
  horizon_runs.check_one_task(groups[:3])


def test_what_cannot_be_shown_is_refused(tmp_path):
  cases.write_run(tmp_path / 'a' / 'x', 'ceal', cases.CEAL[0])
  with pytest.raises(ValueError, match='hold a run of fed_avg; found none am'):
    horizon_runs.load_groups([tmp_path / 'a'], _COLUMNS, ['fed_avg'])
  with pytest.raises(ValueError, match='x has no test_loss, test_accuracy'):
    horizon_runs.load_groups(
        [tmp_path / 'a'], ['test_loss', 'epoch', 'test_accuracy']
    )
  cases.write_run(tmp_path / 'b', 'ceal', cases.CEAL[0], status='running')
  with pytest.raises(ValueError, match='finished run, found none among 1'):
    _load(tmp_path / 'b')


def test_settings_are_named_with_their_numbers():
  assert horizon_runs.setting_text('step_size', 1e-5) == 'step_size 1e-5'
  assert horizon_runs.setting_text('step_size', 1e6) == 'step_size 1e6'
  assert horizon_runs.setting_text('code', 'floats') == 'code floats'


def test_names_have_the_digits_that_tell_them_apart(tmp_path):
  for number, eta in enumerate((0.1, 0.10000001, 0.1 + 1e-16)):
    cases.write_run(
        tmp_path / str(number), 'fed_avg', cases.FED_AVG[0], step_size=eta
    )
  groups = _load(tmp_path)
  names = _names(groups)
  assert len(set(names)) == len(groups) == 3


def test_equal_names_in_two_tasks_take_no_more_digits(tmp_path):
  for task in ('scaled_regression', 'mnist_logistic'):
    for eta in (0.1, 0.3):
      cases.write_run(
          tmp_path / f'{task}-{eta}', 'fed_avg', cases.FED_AVG[0],
          task={'task': task}, step_size=eta,
      )
  assert _names(_load(tmp_path)) == [
      'FedAvg, step_size 0.1', 'FedAvg, step_size 0.3'
  ] * 2
