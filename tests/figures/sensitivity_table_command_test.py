"""The table of sensitivity from the command line."""

import pandas as pd

from baselines.figures import main
from tests.figures import horizon_cases as cases


def test_files_are_written_and_the_table_is_exact(tmp_path, capsys):
  cases.write_all(tmp_path / 'runs')
  cases.write_run(tmp_path / 'runs' / 'x', 'ceal', cases.CEAL[1], clip=False)
  output, csv = tmp_path / 'new' / 'a.md', tmp_path / 'new' / 'a.csv'
  code = main.main([
      'sensitivity_table', '--runs', str(tmp_path / 'runs'), '--output',
      str(output), '--csv', str(csv),
  ])
  assert code == 0
  assert output.read_text().splitlines()[3] == (
      '| scaled_regression row_sum (synthetic) | clip False | signed_unary | 1 '
      '| 20.00 | 20.00 | 19.00 | 2.0 | 25.0% | 3.1% | 3.0% |'
  )
  assert pd.read_csv(csv).regret_mean.tolist() == [18, 20]
  said = capsys.readouterr().out.splitlines()
  assert said[-2:] == [str(output), str(csv)]


def test_runs_without_ceal_are_refused(tmp_path, capsys):
  cases.write_run(tmp_path / 'a', 'fed_avg', cases.FED_AVG[0])
  code = main.main([
      'sensitivity_table', '--runs', str(tmp_path / 'a'), '--output',
      str(tmp_path / 'a.md'),
  ])
  cases.assert_refused(capsys, code, 'runs must hold a run of ceal')
  assert not (tmp_path / 'a.md').exists()
