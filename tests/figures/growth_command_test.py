"""Growth from the command line."""

import pandas as pd

from baselines.figures import main
from tests.figures import horizon_cases as cases


def _draw(tmp_path, *arguments):
  return main.main([
      'growth', '--runs', str(tmp_path / 'runs'), '--output',
      str(tmp_path / 'new' / 'a.png'), *arguments,
  ])


def test_files_are_written_and_the_table_is_exact(tmp_path, capsys):
  cases.write_all(tmp_path / 'runs')
  cases.write_run(
      tmp_path / 'runs' / 'x', 'ceal', cases.CEAL[0][:1], horizon=10
  )
  csv = tmp_path / 'new' / 'a.csv'
  assert _draw(tmp_path, '--csv', str(csv), '--log_scale') == 0
  assert (tmp_path / 'new' / 'a.png').read_bytes().startswith(b'\x89PNG')
  table = pd.read_csv(csv)
  assert table.horizon.tolist() == [100, 100, 10, 100]
  assert table.regret_mean.tolist() == [19, 22, 4, 18]
  assert len(capsys.readouterr().out.splitlines()) == 2


def test_one_horizon_is_refused(tmp_path, capsys):
  cases.write_all(tmp_path / 'runs')
  cases.assert_refused(capsys, _draw(tmp_path), 'must differ in horizon, found')


def test_several_tasks_are_refused(tmp_path, capsys):
  cases.write_all(tmp_path / 'runs')
  cases.write_run(
      tmp_path / 'runs' / 'x', 'ceal', cases.CEAL[0], task={'model': 'row'}
  )
  cases.assert_refused(capsys, _draw(tmp_path), 'must be of one task')
