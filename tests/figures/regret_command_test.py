"""Regret against time, from the command line."""

import pandas as pd

from baselines.figures import main
from tests.figures import horizon_cases as cases


def test_files_are_written_and_the_table_is_exact(tmp_path, capsys):
  cases.write_all(tmp_path / 'runs')
  output, csv = tmp_path / 'new' / 'a.png', tmp_path / 'new' / 'a.csv'
  code = main.main([
      'regret', '--runs', str(tmp_path / 'runs'), '--output', str(output),
      '--csv', str(csv), '--log_scale',
  ])
  assert code == 0 and output.read_bytes().startswith(b'\x89PNG')
  assert capsys.readouterr().out == f'{output}\n{csv}\n'
  table = pd.read_csv(csv)
  assert list(table.columns) == [
      'algorithm', 'time_used', 'runs', 'cumulative_regret_mean',
      'cumulative_regret_sd', 'cumulative_uplink_bits_mean',
  ]
  last = table[table.time_used == 100]
  assert last.cumulative_regret_mean.tolist() == [19, 22, 18]


def _draw(tmp_path, *folders):
  runs = [a for folder in folders for a in ('--runs', str(folder))]
  return main.main(['regret', *runs, '--output', str(tmp_path / 'a.png')])


def test_several_tasks_are_refused(tmp_path, capsys):
  cases.write_all(tmp_path / 'a')
  cases.write_all(tmp_path / 'b', task={'model': 'row'})
  code = _draw(tmp_path, tmp_path / 'a', tmp_path / 'b')
  cases.assert_refused(capsys, code, 'must be of one task')
  assert not (tmp_path / 'a.png').exists()


def test_runs_without_regret_are_refused(tmp_path, capsys):
  cases.write_all(tmp_path / 'a', without=['cumulative_regret'])
  code = _draw(tmp_path, tmp_path / 'a')
  cases.assert_refused(capsys, code, 'has no cumulative_regret.')
