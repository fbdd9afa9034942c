"""Figure 1 from the command line."""

from fractions import Fraction

import pandas as pd
import pytest

from baselines.figures import figure1
from baselines.figures import main

_FAST = [
    '--rounds', '60', '--server_learning_rate', '0.05', '--start', '-0.5',
    '--num_steps', '4', '--client_learning_rates', '0,1/4',
    '--num_steps_list', '1,10', '--client_learning_rate', '0.1',
]


def test_default_table_proves_the_figure(tmp_path, capsys):
  """G26 to 1e-9, E x to x* to 1e-9, tails within 3 standard errors."""
  output, csv = tmp_path / 'new' / 'a.png', tmp_path / 'new' / 'a.csv'
  code = main.main(['figure1', '--output', str(output), '--csv', str(csv)])
  assert code == 0 and output.read_bytes().startswith(b'\x89PNG')
  said = capsys.readouterr().out.splitlines()
  assert said[0].split()[:3] == ['varied', 'client_learning_rate', 'num_steps']
  assert len(said) == 13 and said[11:] == [str(output), str(csv)]
  table = pd.read_csv(csv, float_precision='round_trip')
  assert list(table.num_steps) == [10] * 5 + [1, 2, 5, 10, 40]
  assert list(table.minimizer[1:5]) == pytest.approx(
      [0.7829627662, 0.7979469807, 0.8284934081, 1.2607462097], abs=1e-9
  )
  assert table.expected_gap.abs().max() < 1e-9
  assert table.z_score.abs().max() <= 3.0
  assert table.start_effect.abs().max() < 1e-3


def test_options_reach_the_curves(tmp_path, monkeypatch):
  monkeypatch.setattr(figure1, 'draw', lambda *_: None)
  csv = tmp_path / 'a.csv'
  for seed in ('1', '2'):
    arguments = ['--output', str(tmp_path / 'a.png'), '--csv', str(csv)]
    assert main.main(['figure1', *arguments, *_FAST, '--seed', seed]) == 0
    csv = tmp_path / 'b.csv'
  tables = [pd.read_csv(tmp_path / name) for name in ('a.csv', 'b.csv')]
  rows = list(zip(tables[0].client_learning_rate, tables[0].num_steps))
  assert rows == [(0.0, 4), (0.25, 4), (0.1, 1), (0.1, 10)]
  # E x_{T+1} - x* = (1 - eta E a)^T (x_1 - x*) with E a = 4 E z, K = 4.
  expected = (1 - Fraction(5, 100) * 4 * Fraction(7, 5)) ** 60
  expected *= Fraction(-1, 2) - Fraction(5, 7)
  assert tables[0].expected_gap[0] == pytest.approx(float(expected), abs=1e-15)
  assert (tables[0].tail_mean != tables[1].tail_mean).all()
  assert (tables[0].standard_error == tables[1].standard_error).all()


@pytest.mark.parametrize('arguments, message', [
    (['--server_learning_rate', '1'], 'server_learning_rate must let the'),
    (['--client_learning_rates', '0,2'], 'client_learning_rate must leave'),
])
def test_rates_that_do_not_settle_are_refused(
    arguments, message, tmp_path, capsys
):
  output = tmp_path / 'a.png'
  assert main.main(['figure1', '--output', str(output), *arguments]) == 2
  said = capsys.readouterr()
  assert said.err.startswith('localupdate-figures: error: ' + message)
  assert said.err.count('\n') == 1 and not said.out and not output.exists()


@pytest.mark.parametrize('arguments, message', [
    (['--num_steps_list', '1,101'], 'argument --num_steps_list: must be a'),
    (['--client_learning_rate', '-1'], 'argument --client_learning_rate: '),
    (['--rounds', '1'], 'argument --rounds: must be a whole number from 2'),
    (['--csv', 'a.txt'], "argument --csv: must end in one of .csv"),
])
def test_wrong_values_are_refused(arguments, message, tmp_path, capsys):
  with pytest.raises(SystemExit) as caught:
    main.main(['figure1', '--output', str(tmp_path / 'a.png'), *arguments])
  said = capsys.readouterr().err
  assert caught.value.code == 2 and message in said and said.count('\n') == 1
