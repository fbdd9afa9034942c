"""Lines and captions say which rates, which data, and what is missing."""

import pytest

from baselines.figures import rate_captions
from baselines.figures import rate_runs
from baselines.figures import style
from baselines.figures import symbols
from tests.figures import rate_cases as cases


def _load(*folders):
  return rate_runs.load_groups(folders, ['loss_before_training'])


def test_lines_are_named_by_gamma_and_by_eta_where_it_differs(tmp_path):
  groups = _load(cases.write_all(tmp_path / 'a'))
  names = rate_captions.name_lines
  assert names(groups)[:2] == [
      r'$\gamma=0, \eta=0.01$', r'$\gamma=0, \eta=0.1$'
  ]
  assert names(groups[1::2]) == [
      r'$\gamma=0$', r'$\gamma=0.1$', r'$\gamma=1$'
  ]
  assert names(groups[1:2], shows_eta=True) == [r'$\gamma=0, \eta=0.1$']


def test_equal_rates_are_one_number(tmp_path):
  for rate in (0.1, 10**-0.5):
    cases.write_run(tmp_path / str(rate), rate, rate, *cases.RUNS[0][2:])
  assert rate_captions.name_lines(_load(tmp_path)) == [
      r'$\gamma=\eta=0.1$', r'$\gamma=\eta=0.3162$'
  ]


def test_other_settings_are_named_where_they_differ(tmp_path):
  cases.write_run(tmp_path / '0', *cases.RUNS[0])
  cases.write_run(tmp_path / '1', *cases.RUNS[0], batch_size=8)
  cases.write_decay(tmp_path / '2')
  assert sorted(rate_captions.name_lines(_load(tmp_path))) == [
      r'$\gamma=0, \eta=0.01$, batch_size 4',
      r'$\gamma=0, \eta=0.01$, batch_size 8',
      r'decay: $\gamma=1, \eta=0.1$',
  ]


def test_caption_says_data_setup_rounds_seeds_and_losses(tmp_path):
  cases.write_all(tmp_path / 'a')
  cases.write_all(tmp_path / 'b', seed=2)
  groups = _load(tmp_path / 'a', tmp_path / 'b')
  assert rate_captions.describe(groups) == [
      'femnist cnn (synthetic)',
      r'$M$ 2, $B$ 4, $\Theta$ 1:2, server sgd',
      '12 runs of 6 rounds',
      'sampling seed 1 or 2',
      '2 diverged, not drawn',
  ]


def test_caption_counts_unfinished_runs_and_names_one_eta(tmp_path):
  cases.write_run(tmp_path / '0', *cases.RUNS[0], status='running')
  assert rate_captions.describe(_load(tmp_path))[2:] == [
      r'$\eta$ = 0.01', '1 run of 6 rounds', 'sampling seed 1',
      '0 diverged, not drawn', '1 not finished',
  ]


def test_rule_is_told(tmp_path):
  groups = _load(cases.write_all(tmp_path / 'a'))
  rule = rate_runs.Rule()
  assert rate_captions.describe_rule(groups, rule) == (
      r'$\eta$ of each $\gamma$: that with the smallest mean '
      'loss_before_training in the last round, of 0.01, 0.1'
  )
  assert rate_captions.describe_rule(groups[1::2], rule) == (
      r'one $\eta$ for each $\gamma$, found before'
  )


def test_decay_is_told_with_its_numbers(tmp_path):
  groups = _load(cases.write_decay(tmp_path / 'a'))
  assert rate_captions.describe_decay(groups) == [
      r'decay: LocalUpdateDecay from these rates (canonical: $W$ 2, $P$ 3, '
      r'$C$ 4, $\Delta$ 0.5, $\alpha$ 0.1, $\beta$ 0.9)'
  ]
  assert not rate_captions.describe_decay([])


def test_gammas_of_which_nothing_is_left_are_named(tmp_path):
  groups = _load(cases.write_all(tmp_path / 'a'))
  assert rate_captions.describe_lost(groups, groups[:3]) == [
      r'nothing to draw of $\gamma$ = 1'
  ]
  assert not rate_captions.describe_lost(groups, groups)


def test_plain_text_has_no_marks():
  assert rate_captions.plain_text(r'decay: $\gamma=1$') == 'decay: gamma=1'


def test_large_and_small_rates_are_one_number(tmp_path):
  for name, gamma, eta in (('0', 1e4, 1e-5), ('1', 1e6, 10**-4.5)):
    cases.write_run(tmp_path / name, gamma, eta, *cases.RUNS[0][2:])
  groups = _load(tmp_path)
  names = rate_captions.name_lines(groups)
  assert names == [
      r'$\gamma=10000, \eta=1\mathrm{e}{-}5$',
      r'$\gamma=1\mathrm{e}6, \eta=3.162\mathrm{e}{-}5$',
  ]
  assert [rate_captions.plain_text(name) for name in names] == [
      'gamma=10000, eta=1e-5', 'gamma=1e6, eta=3.162e-5'
  ]
  assert rate_captions.describe_lost(groups, groups[:1]) == [
      r'nothing to draw of $\gamma$ = 1e6'
  ]
  assert r'$\eta$ = 1e-5' in rate_captions.describe(groups[:1])


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
    cases.write_run(tmp_path / str(eta), 0.0, eta, *cases.RUNS[0][2:])
  said = rate_captions.describe_rule(_load(tmp_path), rate_runs.Rule())
  assert said.endswith(', of 1e-5, 1000')


def test_captions_tell_what_is_not_as_usual(tmp_path):
  cases.write_all(
      tmp_path / 'a', rate={
          'client_schedule': 'inverse', 'client_schedule_offset': 2.5,
          'server_schedule': 'constant',
      },
      client_sampling='iid',
  )
  groups = rate_runs.load_groups([tmp_path / 'a'], ['update_norm'])
  parts = rate_captions.describe(groups)
  assert parts[2:5] == [
      'client_sampling iid', 'client_schedule inverse',
      'client_schedule_offset 2.5',
  ]
