"""`localupdate-figures theory` as a user meets it."""

import pandas as pd
import pytest

from baselines.figures import main
from baselines.figures import trade_off_figure
from tff_localupdate.theory import quadratics
from tff_localupdate.theory import trade_off

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
  monkeypatch.setattr(trade_off_figure, 'draw', lambda *_: None)
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
