"""Bits under each code, from the command line."""

import pandas as pd

from baselines.figures import main
from tests.figures import horizon_cases as cases


def test_files_are_written_and_the_table_is_exact(tmp_path, capsys):
  # Bits are enough: no regret need be counted.
  cases.write_all(tmp_path / 'runs', without=['cumulative_regret'])
  output, csv = tmp_path / 'new' / 'a.md', tmp_path / 'new' / 'a.csv'
  code = main.main([
      'codes_table', '--runs', str(tmp_path / 'runs'), '--output', str(output),
      '--csv', str(csv),
  ])
  assert code == 0
  assert output.read_text().splitlines()[4] == (
      '| scaled_regression row_sum (synthetic) | CEAL | uplink | - | - '
      '| 19.00 (1.41) |'
  )
  assert pd.read_csv(csv).bits_mean.tolist() == [640, 80, 19, 640, 640, 16]
  said = capsys.readouterr().out.splitlines()
  assert said[-2:] == [str(output), str(csv)]


def test_runs_without_bits_are_refused(tmp_path, capsys):
  cases.write_all(tmp_path / 'a', without=['cumulative_downlink_bits'])
  code = main.main([
      'codes_table', '--runs', str(tmp_path / 'a'), '--output',
      str(tmp_path / 'a.md'),
  ])
  cases.assert_refused(capsys, code, 'has no cumulative_downlink_bits.')
