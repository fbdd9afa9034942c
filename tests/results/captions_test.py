"""Lines and captions say which runs, which rates, and what is missing."""

import pytest

from baselines.figures import style
from baselines.results import captions
from baselines.results import groups as groups_lib
from baselines.results import ranking
from baselines.results import runs as runs_lib
from baselines.results import symbols
from tests.results import horizon_cases
from tests.results import rate_cases


def _load(*folders):
  return groups_lib.group_by_rates(
      runs_lib.load_runs(folders), ['loss_before_training'])


def test_lines_are_named_by_gamma_and_by_eta_where_it_differs(tmp_path):
  groups = _load(rate_cases.write_all(tmp_path / 'a'))
  names = captions.name_rates
  assert names(groups)[:2] == [
      r'$\gamma=0, \eta=0.01$', r'$\gamma=0, \eta=0.1$'
  ]
  assert names(groups[1::2]) == [
      r'$\gamma=0$', r'$\gamma=0.1$', r'$\gamma=1$'
  ]
  assert names(groups[1:2], shows_eta=True) == [r'$\gamma=0, \eta=0.1$']


def test_equal_rates_are_one_number(tmp_path):
  for rate in (0.1, 10**-0.5):
    rate_cases.write_run(
        tmp_path / str(rate), rate, rate, *rate_cases.RUNS[0][2:]
    )
  assert captions.name_rates(_load(tmp_path)) == [
      r'$\gamma=\eta=0.1$', r'$\gamma=\eta=0.3162$'
  ]


def test_other_settings_are_named_where_they_differ(tmp_path):
  rate_cases.write_run(tmp_path / '0', *rate_cases.RUNS[0])
  rate_cases.write_run(tmp_path / '1', *rate_cases.RUNS[0], batch_size=8)
  rate_cases.write_decay(tmp_path / '2')
  assert sorted(captions.name_rates(_load(tmp_path))) == [
      r'$\gamma=0, \eta=0.01$, batch_size 4',
      r'$\gamma=0, \eta=0.01$, batch_size 8',
      r'decay: $\gamma=1, \eta=0.1$',
  ]


def test_caption_says_data_setup_rounds_seeds_and_losses(tmp_path):
  rate_cases.write_all(tmp_path / 'a')
  rate_cases.write_all(tmp_path / 'b', seed=2)
  groups = _load(tmp_path / 'a', tmp_path / 'b')
  assert captions.describe_rates(groups) == [
      'femnist cnn (synthetic)',
      r'$M$ 2, $B$ 4, $\Theta$ 1:2, server sgd',
      '12 runs of 6 rounds',
      'sampling seed 1 or 2',
      '2 diverged, not drawn',
  ]


def test_caption_counts_unfinished_runs_and_names_one_eta(tmp_path):
  rate_cases.write_run(tmp_path / '0', *rate_cases.RUNS[0], status='running')
  assert captions.describe_rates(_load(tmp_path))[2:] == [
      r'$\eta$ = 0.01', '1 run of 6 rounds', 'sampling seed 1',
      '0 diverged, not drawn', '1 not finished',
  ]


def test_rule_is_told(tmp_path):
  groups = _load(rate_cases.write_all(tmp_path / 'a'))
  rule = ranking.Rule()
  assert captions.describe_rule(groups, rule) == (
      r'$\eta$ of each $\gamma$: that with the smallest mean '
      'loss_before_training in the last round, of 0.01, 0.1'
  )
  assert captions.describe_rule(groups[1::2], rule) == (
      r'one $\eta$ for each $\gamma$, found before'
  )


def test_decay_is_told_with_its_numbers(tmp_path):
  groups = _load(rate_cases.write_decay(tmp_path / 'a'))
  assert captions.describe_decay(groups) == [
      r'decay: LocalUpdateDecay from these rates (canonical: $W$ 2, $P$ 3, '
      r'$C$ 4, $\Delta$ 0.5, $\alpha$ 0.1, $\beta$ 0.9)'
  ]
  assert not captions.describe_decay([])


def test_gammas_of_which_nothing_is_left_are_named(tmp_path):
  groups = _load(rate_cases.write_all(tmp_path / 'a'))
  assert captions.describe_lost(groups, groups[:3]) == [
      r'nothing to draw of $\gamma$ = 1'
  ]
  assert not captions.describe_lost(groups, groups)


def test_plain_text_has_no_marks():
  assert captions.plain_text(r'decay: $\gamma=1$') == 'decay: gamma=1'


def test_large_and_small_rates_are_one_number(tmp_path):
  for name, gamma, eta in (('0', 1e4, 1e-5), ('1', 1e6, 10**-4.5)):
    rate_cases.write_run(tmp_path / name, gamma, eta, *rate_cases.RUNS[0][2:])
  groups = _load(tmp_path)
  names = captions.name_rates(groups)
  assert names == [
      r'$\gamma=10000, \eta=1\mathrm{e}{-}5$',
      r'$\gamma=1\mathrm{e}6, \eta=3.162\mathrm{e}{-}5$',
  ]
  assert [captions.plain_text(name) for name in names] == [
      'gamma=10000, eta=1e-5', 'gamma=1e6, eta=3.162e-5'
  ]
  assert captions.describe_lost(groups, groups[:1]) == [
      r'nothing to draw of $\gamma$ = 1e6'
  ]
  assert r'$\eta$ = 1e-5' in captions.describe_rates(groups[:1])


def test_exponents_stand_close_in_pictures():
  def width(text):
    figure = style.new_figure()
    drawn = figure.text(0.0, 0.0, text)
    return drawn.get_window_extent().width

  # Without the space around the sign of a difference, 1 e - 5.
  written = width(f'${symbols.in_formula("1e-5")}$')
  assert written == pytest.approx(width('1e\u22125'), abs=1.0)
  assert written < width('$1e-5$') - 3.0


def test_etas_compared_are_named_in_full(tmp_path):
  for eta in (1000.0, 1e-5):
    rate_cases.write_run(tmp_path / str(eta), 0.0, eta, *rate_cases.RUNS[0][2:])
  said = captions.describe_rule(_load(tmp_path), ranking.Rule())
  assert said.endswith(', of 1e-5, 1000')


def test_captions_tell_what_is_not_as_usual(tmp_path):
  rate_cases.write_all(
      tmp_path / 'a', rate={
          'client_schedule': 'inverse', 'client_schedule_offset': 2.5,
          'server_schedule': 'constant',
      },
      client_sampling='iid',
  )
  groups = groups_lib.group_by_rates(
      runs_lib.load_runs([tmp_path / 'a']), ['update_norm'])
  parts = captions.describe_rates(groups)
  assert parts[2:5] == [
      'client_sampling iid', 'client_schedule inverse',
      'client_schedule_offset 2.5',
  ]


_COLUMNS = ('cumulative_regret',)


def _load_horizon_runs(*folders):
  return groups_lib.group_by_algorithm(
      runs_lib.load_runs(folders), _COLUMNS)


def _names(groups, **ignored):
  return captions.name_algorithms(groups, **ignored)


def test_seeds_are_repetitions_and_algorithms_are_in_the_papers_order(tmp_path):
  groups = _load_horizon_runs(horizon_cases.write_all(tmp_path))
  assert [len(group.runs) for group in groups] == [2, 2, 2]
  assert _names(groups) == ['FedAvg', 'FedPAQ', 'CEAL']
  assert groups[0].task == 'scaled_regression row_sum (synthetic)'


def test_tasks_are_in_the_order_in_which_they_are_given(tmp_path):
  folders = [tmp_path / 'b', tmp_path / 'a']
  horizon_cases.write_all(folders[0], task={'task': 'z'})
  horizon_cases.write_all(folders[1], task={'task': 'y'})
  tasks = [group.task[0] for group in _load_horizon_runs(*folders)]
  assert tasks == ['z'] * 3 + ['y'] * 3
  assert [g.task[0] for g in _load_horizon_runs(
      *folders[::-1]
  )] == ['y'] * 3 + ['z'] * 3


def test_names_say_what_tells_groups_apart(tmp_path):
  horizon_cases.write_all(tmp_path)
  horizon_cases.write_run(
      tmp_path / 'a', 'ceal', horizon_cases.CEAL[0], step_size=0.25,
      code='elias_gamma',
  )
  groups = _load_horizon_runs(tmp_path)
  assert _names(groups) == [
      'FedAvg', 'FedPAQ', 'CEAL, code elias_gamma, step_size 0.25',
      'CEAL, code signed_unary, step_size 0.5',
  ]
  assert _names(groups, ignored=['code'])[2:] == [
      'CEAL, step_size 0.25', 'CEAL, step_size 0.5'
  ]


def test_experiment_is_named_where_algorithms_differ_in_it(tmp_path):
  horizon_cases.write_run(
      tmp_path / 'a', 'ceal', horizon_cases.CEAL[0], run={'batch_size': 4}
  )
  horizon_cases.write_run(
      tmp_path / 'b', 'fed_avg', horizon_cases.FED_AVG[0], horizon=50
  )
  assert _names(_load_horizon_runs(tmp_path)) == [
      'FedAvg, batch_size 1, horizon 50', 'CEAL, batch_size 4, horizon 100'
  ]


def test_experiments_agree_whatever_changes_no_result(tmp_path):
  fields = [
      {}, {'rounds_per_evaluation': 5}, {'sampling_seed': 9}, {'batch_size': 2}
  ]
  keys = []
  for i, run in enumerate(fields):
    horizon_cases.write_run(
        tmp_path / f'{i}', 'ceal', horizon_cases.CEAL[0], run=run
    )
    keys.append(_load_horizon_runs(tmp_path / f'{i}')[0].experiment)
  assert keys[0] == keys[1] == keys[2] != keys[3]
  horizon_cases.write_run(
      tmp_path / '4', 'ceal', horizon_cases.CEAL[0], horizon=50
  )
  assert _load_horizon_runs(tmp_path / '4')[0].experiment != keys[0]


def test_description_is_complete(tmp_path):
  groups = _load_horizon_runs(horizon_cases.write_all(tmp_path))
  assert '; '.join(captions.describe_algorithms(groups)) == (
      'task scaled_regression row_sum (synthetic); T = 100; mean of 2 runs '
      'each; sampling seeds 1-2; data seeds 1-2'
  )


def test_description_counts_and_says_what_is_left_out(tmp_path):
  horizon_cases.write_all(tmp_path, regret_every=25)
  for seed, status in ((7, 'finished'), (4, 'diverged'), (5, 'interrupted')):
    horizon_cases.write_run(
        tmp_path / f'x{seed}', 'ceal', horizon_cases.CEAL[0], seed=seed,
        status=status, regret_every=25,
    )
  groups = _load_horizon_runs(tmp_path)
  assert len(groups[2].runs) == 3 and len(groups[2].all_runs) == 5
  assert captions.describe_algorithms(groups)[2:] == [
      'mean of 2-3 runs each', 'sampling seeds 1-2, 7',
      'data seeds 1-2, 7',
      'f evaluated at the middle of every 25 queries of clients that move '
      'between queries',
      'diverged and left out: 1 of 5 CEAL',
      'unfinished and left out: 1 of 5 CEAL',
  ]


def test_run_that_failed_at_once_needs_no_columns(tmp_path):
  horizon_cases.write_all(tmp_path)
  failed = horizon_cases.write_run(
      tmp_path / 'x', 'ceal', (), seed=3, status='failed'
  )
  (failed / 'metrics.csv').unlink()
  assert captions.describe_algorithms(_load_horizon_runs(tmp_path))[-1] == (
      'unfinished and left out: 1 of 3 CEAL'
  )


def test_repeated_runs_count_as_one_that_has_finished(tmp_path):
  for name, status in (('a', 'failed'), ('b', 'finished'), ('c', 'finished')):
    horizon_cases.write_run(
        tmp_path / name, 'ceal', horizon_cases.CEAL[0], status=status
    )
  horizon_cases.write_run(tmp_path / 'd', 'ceal', horizon_cases.CEAL[1], seed=2)
  (group,) = _load_horizon_runs(tmp_path, tmp_path)
  assert [run.path.name for run in group.all_runs] == ['b', 'd']


def test_several_horizons_and_intervals_are_all_named(tmp_path):
  for i, (horizon, every) in enumerate(((500, 25), (2000, 1))):
    horizon_cases.write_run(
        tmp_path / f'{i}', 'fed_avg', horizon_cases.FED_AVG[0], horizon=horizon,
        regret_every=every,
    )
  said = captions.describe_algorithms(_load_horizon_runs(tmp_path))
  assert said[1] == 'T = 500, 2000'
  assert 'every 1 or 25 queries' in said[4]


def test_each_task_is_described(tmp_path):
  horizon_cases.write_all(tmp_path / 'a')
  horizon_cases.write_run(
      tmp_path / 'b', 'ceal', horizon_cases.CEAL[0], task={'model': 'row'},
      horizon=50,
  )
  groups = _load_horizon_runs(tmp_path / 'a', tmp_path / 'b')
  assert captions.describe_tasks(groups) == [
      'Runs: task scaled_regression row_sum (synthetic); T = 100; mean of 2 '
      'runs each; sampling seeds 1-2; data seeds 1-2.',
      'Runs: task scaled_regression row (synthetic); T = 50; mean of 1 run '
      'each; sampling seeds 1.',
  ]
  with pytest.raises(ValueError, match=r'row \(synthetic\) and scaled_regr'):
    groups_lib.check_one_task(groups)
  groups_lib.check_one_task(groups[:3])


def test_what_cannot_be_shown_is_refused(tmp_path):
  horizon_cases.write_run(tmp_path / 'a' / 'x', 'ceal', horizon_cases.CEAL[0])
  with pytest.raises(ValueError, match='hold a run of fed_avg; found none am'):
    groups_lib.group_by_algorithm(
      runs_lib.load_runs([tmp_path / 'a']), _COLUMNS, ['fed_avg'])
  with pytest.raises(ValueError, match='x has no test_loss, test_accuracy'):
    groups_lib.group_by_algorithm(
      runs_lib.load_runs(
          [tmp_path / 'a']
      ), ['test_loss', 'epoch', 'test_accuracy']
    )
  horizon_cases.write_run(
      tmp_path / 'b', 'ceal', horizon_cases.CEAL[0], status='running'
  )
  with pytest.raises(ValueError, match='finished run, found none among 1'):
    _load_horizon_runs(tmp_path / 'b')


def test_settings_are_named_with_their_numbers():
  assert captions.setting_text('step_size', 1e-5) == 'step_size 1e-5'
  assert captions.setting_text('step_size', 1e6) == 'step_size 1e6'
  assert captions.setting_text('code', 'floats') == 'code floats'


def test_names_have_the_digits_that_tell_them_apart(tmp_path):
  for number, eta in enumerate((0.1, 0.10000001, 0.1 + 1e-16)):
    horizon_cases.write_run(
        tmp_path / str(
            number
        ), 'fed_avg', horizon_cases.FED_AVG[0], step_size=eta
    )
  groups = _load_horizon_runs(tmp_path)
  names = _names(groups)
  assert len(set(names)) == len(groups) == 3


def test_equal_names_in_two_tasks_take_no_more_digits(tmp_path):
  for task in ('scaled_regression', 'mnist_logistic'):
    for eta in (0.1, 0.3):
      horizon_cases.write_run(
          tmp_path / f'{task}-{eta}', 'fed_avg', horizon_cases.FED_AVG[0],
          task={'task': task}, step_size=eta,
      )
  assert _names(_load_horizon_runs(tmp_path)) == [
      'FedAvg, step_size 0.1', 'FedAvg, step_size 0.3'
  ] * 2
