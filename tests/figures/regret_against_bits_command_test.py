"""Regret against bits, from the command line."""

import pandas as pd

from baselines.figures import main
from tests.figures import horizon_cases as cases


def test_files_are_written_and_the_table_is_exact(tmp_path, capsys):
  cases.write_all(tmp_path / 'runs')
  output, csv = tmp_path / 'new' / 'a.png', tmp_path / 'new' / 'a.csv'
  code = main.main([
      'regret_against_bits', '--runs', str(tmp_path / 'runs'), '--output',
      str(output), '--csv', str(csv),
  ])
  assert code == 0 and output.read_bytes().startswith(b'\x89PNG')
  assert capsys.readouterr().out == f'{output}\n{csv}\n'
  last = pd.read_csv(csv).query('time_used == 100')
  assert last.cumulative_uplink_bits_mean.tolist() == [640, 80, 19]


def test_runs_without_bits_are_refused(tmp_path, capsys):
  cases.write_all(tmp_path / 'a', without=['cumulative_uplink_bits'])
  code = main.main([
      'regret_against_bits', '--runs', str(tmp_path / 'a'), '--output',
      str(tmp_path / 'a.png'),
  ])
  cases.assert_refused(capsys, code, 'has no cumulative_uplink_bits.')
