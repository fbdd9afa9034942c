"""The recommendations row by row, the panels, and the command."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest

from baselines.figures import main
from baselines.figures import style
from baselines.figures import trade_off as trade_off_lib
from tff_localupdate.theory import bounds
from tff_localupdate.theory import convergence
from tff_localupdate.theory import quadratics
from tff_localupdate.theory import spectrum
from tff_localupdate.theory import trade_off
from tff_localupdate.theta import Theta

CONSTANTS = quadratics.PopulationConstants(0.1, 1.0, 0.2, 0.02)
QUESTION = trade_off.Question(CONSTANTS, 10, 0.5, 500, 3.0)


@pytest.fixture(name='rows', scope='module')
def _rows():
  best_of_each = trade_off.best_of_each_num_steps(QUESTION)
  table = trade_off_lib.advice_table(QUESTION, best_of_each, 0.5)
  assert set(table) == {
      *trade_off_lib.ADVICE, *trade_off_lib.DISTANCES
  }
  return table.set_index('choice')


def test_g12_distance_bounds():
  constants = quadratics.PopulationConstants(0.5, 3.0, 1.0, 2.0)
  found = trade_off.distance_bounds(constants, 5, 0.2)
  assert found['theorem_16'] == pytest.approx(73.1173617847, abs=1e-9)
  assert found['theorem_17'] == pytest.approx(29.4533466826, abs=1e-9)
  # (eps/(1 - eps)) kappa sigma_c (1 + sigma_A/mu), eps/(1 - eps) = e^{gKL} - 1.
  assert found['corollary_19'] == pytest.approx(
      math.expm1(0.2 * 5 * 3.0) * 6.0 * 2.0 * 3.0
  )
  phi_l, phi_mu = ((1.0 - (1.0 - 0.2 * lam) ** 5) / 0.2 for lam in (3.0, 0.5))
  assert found['theorem_21'] == pytest.approx(
      (15.0 - phi_l) / 2.5 * 2.0 * (1.0 + phi_l / phi_mu)
  )


def test_distance_bounds_at_their_ends():
  found = trade_off.distance_bounds(CONSTANTS, 10, 0.0)
  assert [str(value) for value in found.values()] == ['0.0'] * 4
  found = trade_off.distance_bounds(CONSTANTS, 10_000, 0.9)
  assert found['corollary_19'] == math.inf and 0.0 < found['theorem_17']
  same = quadratics.PopulationConstants(0.1, 1.0)
  found = trade_off.distance_bounds(same, 10_000, 0.9)
  assert list(found.values()) == [0.0] * 4


def test_rows_are_the_choices(rows):
  assert list(rows.index) == [
      'gamma = 0', 'best gamma', 'best gamma, eta decays',
      'best gamma, both decay', 'best gamma and K', 'given gamma',
  ]
  expected = trade_off.best_client_rate(
      trade_off.constant_rates, QUESTION, 10
  )
  row = rows.loc['best gamma']
  assert row.client_learning_rate == expected.client_learning_rate
  assert row.server_learning_rate == expected.server_learning_rate
  assert row.error == expected.error
  assert rows.loc['gamma = 0'].client_learning_rate == 0.0
  assert rows.loc['given gamma'].client_learning_rate == 0.5
  assert rows.loc['best gamma'].error <= rows.loc['gamma = 0'].error
  assert rows.loc['best gamma'].error <= rows.loc['given gamma'].error


def test_steps_recommended_are_the_fewest_that_do(rows):
  row = rows.loc['best gamma and K']
  best_of_each = trade_off.best_of_each_num_steps(QUESTION)
  least = min(bound.error for bound in best_of_each)
  assert row.num_steps > 10 and row.error <= 1.05 * least
  for bound in best_of_each:
    if bound.num_steps < row.num_steps:
      assert bound.error > 1.05 * least


def test_bounds_are_named_and_house_forms_said(rows):
  assert rows.loc['gamma = 0'].bounds == 'Theorem 26'
  assert rows.loc['best gamma'].bounds == 'Theorem 26 and 17'
  assert rows.loc['given gamma'].bounds == 'Theorem 26 and 21'
  assert rows.loc['best gamma, eta decays'].bounds.startswith('Theorem 27')
  assert rows.loc['best gamma, both decay'].bounds == 'Theorem 29'
  assert list(rows.form) == [
      'derived', 'derived', 'house', 'house', 'derived', 'derived'
  ]
  for row in rows.itertuples():
    if '17' in row.bounds:
      assert row.surrogate_distance == row.theorem_17 <= row.theorem_21
    if '21' in row.bounds:
      assert row.surrogate_distance == row.theorem_21 <= row.theorem_17


def test_condition_number_and_limit_are_those_of_the_theory(rows):
  for row in rows.itertuples():
    where = (row.num_steps, row.client_learning_rate)
    assert row.condition_number == pytest.approx(
        spectrum.condition_number_bound(
            Theta.ones(row.num_steps), 0.1, 1.0, row.client_learning_rate
        )
    )
    assert row.max_server_learning_rate == pytest.approx(
        convergence.max_server_rate(CONSTANTS, *where)
    )


def test_given_rate_is_left_out_or_refused():
  best_of_each = [trade_off.constant_rates(QUESTION, 10, 0.0)]
  table = trade_off_lib.advice_table(QUESTION, best_of_each)
  assert 'given gamma' not in set(table.choice)
  with pytest.raises(ValueError, match='client_learning_rate must be below'):
    trade_off_lib.advice_table(QUESTION, best_of_each, 1.0)


CONSTANTS_TRADE_OFF_FIGURE = quadratics.PopulationConstants(0.1, 1.0, 0.2, 0.02)
QUESTION_TRADE_OFF_FIGURE = trade_off.Question(
    CONSTANTS_TRADE_OFF_FIGURE, 10, 0.5, 500, 3.0
)


@pytest.fixture(name='panels', scope='module')
def _panels():
  """The lines of each panel by their labels."""
  best_of_each = trade_off.best_of_each_num_steps(QUESTION_TRADE_OFF_FIGURE)
  figure = trade_off_lib.draw(QUESTION_TRADE_OFF_FIGURE, best_of_each)
  return [
      {line.get_label(): line.get_xydata() for line in axes.get_lines()}
      for axes in figure.axes
  ]


def test_distances(panels):
  assert set(panels[0]) == {
      'Theorem 16', 'Theorem 17', 'Theorem 21, from 0', 'Corollary 19'
  }
  for gamma, value in panels[0]['Theorem 17'][::20]:
    assert value == bounds.fed_avg_distance_bound(
        CONSTANTS_TRADE_OFF_FIGURE, 10, gamma
    )


def test_condition_number_falls_from_that_of_the_loss(panels):
  gammas, values = panels[1]['Corollary 13'].T
  assert (np.diff(values) < 0.0).all()
  expected = (1.0 - (1.0 - gammas) ** 10) / (1.0 - (1.0 - 0.1 * gammas) ** 10)
  np.testing.assert_allclose(values, expected, rtol=1e-9)
  np.testing.assert_allclose(panels[1][r'$L/\mu$, at $\gamma = 0$'][:, 1], 10.0)


def test_error_is_a_sum_and_its_least_is_marked(panels):
  lines = panels[2]
  total = lines['sum'][:, 1]
  parts = lines['optimisation'][:, 1] + lines[r'$\|x^*_\gamma-x^*\|$'][:, 1]
  np.testing.assert_allclose(total, parts, rtol=1e-12)
  best = trade_off.best_client_rate(
      trade_off.constant_rates, QUESTION_TRADE_OFF_FIGURE, 10
  )
  (label,) = [name for name in lines if name.startswith('best')]
  assert lines[label].tolist() == [[best.client_learning_rate, best.error]]
  assert f'{best.client_learning_rate:.3g}' in label
  assert best.error <= total.min()


def test_steps(panels):
  lines = panels[3]
  steps, errors = lines[r'best $\gamma$'].T
  assert (steps[0], steps[-1]) == (1, 100)
  assert (errors <= lines[r'$\gamma = 0$'][:, 1]).all()
  (label,) = [name for name in lines if name.startswith('enough')]
  ((marked, error),) = lines[label]
  assert f'K = {marked:g},' in label
  assert error == errors[steps == marked] <= 1.05 * errors.min()


def test_caption_names_the_numbers():
  text = trade_off_lib.caption(QUESTION_TRADE_OFF_FIGURE)
  assert r'$\mu$ = 0.1, $L$ = 1, $\sigma_A$ = 0.2, $\sigma_c$ = 0.02' in text
  assert r'$V$ = 0.5, $K$ = 10, $T$ = 500, $\|x_1-x^*\|$ = 3.' in text
  assert 'V grows like K.' in text
  figure = style.new_figure()
  style.add_caption(figure, text)
  for line in figure.get_supxlabel().splitlines():
    assert line.count('$') % 2 == 0


def test_figure_without_any_error_is_drawn(tmp_path):
  """kappa = 1, equal clients, no noise: one step is enough, bounds are 0."""
  question = trade_off.Question(
      quadratics.PopulationConstants(1.0, 1.0), 2, 0.0, 5, 1.0
  )
  found = trade_off.best_of_each_num_steps(question)[:2]
  with warnings.catch_warnings():
    warnings.simplefilter('error')
    style.save(trade_off_lib.draw(question, found), tmp_path / 'a.png')
  assert (tmp_path / 'a.png').read_bytes().startswith(b'\x89PNG')


def test_marked_rates_are_one_number():
  # Slow and smooth: eta is large, and gamma small.
  question = trade_off.Question(
      quadratics.PopulationConstants(1e-6, 1e-6, 0.0, 0.0), 2, 0.0, 5, 1.0
  )
  found = trade_off.best_of_each_num_steps(question)[:2]
  figure = trade_off_lib.draw(question, found)
  labels = [
      line.get_label() for axes in figure.axes for line in axes.get_lines()
  ]
  assert any(label.startswith('best: ') for label in labels)
  assert not any('e+' in label or 'e-0' in label for label in labels)


_NUMBERS = {
    'mu': '0.1', 'smoothness': '1', 'sigma_a': '0.2', 'sigma_c': '0.02',
    'noise_variance': '0.5', 'num_steps': '10', 'horizon': '500',
    'distance': '3',
}


def _arguments(tmp_path, **changes):
  numbers = {**_NUMBERS, **changes}
  flags = [f'--{name}={value}' for name, value in numbers.items()]
  return ['theory', *flags, f'--output={tmp_path / "new" / "a.png"}']


def test_tables_and_figure(tmp_path, capsys):
  csv = tmp_path / 'a.csv'
  arguments = _arguments(tmp_path, client_learning_rate='0.25')
  assert main.main([*arguments, f'--csv={csv}']) == 0
  said = capsys.readouterr().out
  output = tmp_path / 'new' / 'a.png'
  assert said.endswith(f'{output}\n{csv}\n')
  assert output.read_bytes().startswith(b'\x89PNG')
  assert said.count('best gamma and K') == 2 and 'house' in said
  assert 'printed constants may differ' in said
  table = pd.read_csv(csv, float_precision='round_trip').set_index('choice')
  question = trade_off.Question(
      quadratics.PopulationConstants(0.1, 1.0, 0.2, 0.02), 10, 0.5, 500, 3.0
  )
  for choice, gamma in (('gamma = 0', 0.0), ('given gamma', 0.25)):
    expected = trade_off.constant_rates(question, 10, gamma)
    row = table.loc[choice]
    assert row.client_learning_rate == gamma
    assert row.server_learning_rate == expected.server_learning_rate
    assert row.error == expected.error
    assert row.error == row.optimisation + row.surrogate_distance
  assert pd.isna(table.loc['best gamma'].offset)
  assert pd.isna(table.loc['best gamma, both decay'].optimisation)


def test_growth_of_the_noise_changes_the_steps(tmp_path, monkeypatch):
  monkeypatch.setattr(trade_off_lib, 'draw', lambda *_: style.new_figure())
  found = {}
  for growth in ('linear', 'square'):
    csv = tmp_path / f'{growth}.csv'
    arguments = _arguments(tmp_path, noise_growth=growth, sigma_c='10')
    assert main.main([*arguments, f'--csv={csv}']) == 0
    table = pd.read_csv(csv).set_index('choice')
    found[growth] = table.loc['best gamma and K'].num_steps
  # With gamma = 0 and V like K^2, V/mu_gamma^2 is the same for each K.
  assert found['square'] == 1 < found['linear']


@pytest.mark.parametrize('changes, message', [
    ({'smoothness': '0.05'}, 'smoothness must be at least mu, 0.1, found 0.05'),
    (
        {'client_learning_rate': '1'},
        'client_learning_rate must be below 1.0, 1/(1 * smoothness), found 1',
    ),
])
def test_numbers_that_do_not_fit_are_refused(
    changes, message, tmp_path, capsys
):
  assert main.main(_arguments(tmp_path, **changes)) == 2
  said = capsys.readouterr()
  assert said.err.startswith(f'localupdate-figures: error: {message}')
  assert said.err.count('\n') == 1 and not said.out
  assert not list(tmp_path.iterdir())


@pytest.mark.parametrize('name, value', [
    ('mu', '0'), ('mu', '-1'), ('smoothness', 'nan'), ('sigma_a', '-0.1'),
    ('sigma_c', 'inf'), ('noise_variance', '-1'), ('num_steps', '0'),
    ('num_steps', '10001'), ('horizon', '2.5'), ('distance', '0'),
    ('client_learning_rate', '-0.1'), ('noise_growth', 'cubic'),
])
def test_wrong_numbers_are_refused(name, value, tmp_path, capsys):
  with pytest.raises(SystemExit) as caught:
    main.main(_arguments(tmp_path, **{name: value}))
  said = capsys.readouterr().err
  assert caught.value.code == 2 and said.count('\n') == 1
  assert said.startswith(f'localupdate-figures: error: argument --{name}: ')
  assert repr(value) in said


def test_missing_numbers_are_named(tmp_path, capsys):
  with pytest.raises(SystemExit):
    main.main(['theory', '--output', str(tmp_path / 'a.png'), '--mu', '1'])
  said = capsys.readouterr().err
  assert '--smoothness' in said and '--distance' in said
