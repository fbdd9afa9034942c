"""Epochs from the command line."""

import pandas as pd

from baselines.figures import main
from tests.figures import horizon_cases as cases


def _draw(tmp_path, *arguments):
  return main.main([
      'epochs', '--runs', str(tmp_path / 'runs'), '--output',
      str(tmp_path / 'new' / 'a.png'), *arguments,
  ])


def test_files_are_written_and_the_table_is_exact(tmp_path, capsys):
  cases.write_all(tmp_path / 'runs')
  csv = tmp_path / 'new' / 'a.csv'
  assert _draw(tmp_path, '--csv', str(csv)) == 0
  assert (tmp_path / 'new' / 'a.png').read_bytes().startswith(b'\x89PNG')
  assert pd.read_csv(csv).queries_mean.tolist() == [15, 40]
  assert len(capsys.readouterr().out.splitlines()) == 2


def test_runs_without_ceal_are_refused(tmp_path, capsys):
  cases.write_run(tmp_path / 'runs', 'fed_avg', cases.FED_AVG[0])
  cases.assert_refused(capsys, _draw(tmp_path), 'must hold a run of ceal')


def test_several_tasks_are_refused(tmp_path, capsys):
  cases.write_run(tmp_path / 'runs' / 'a', 'ceal', cases.CEAL[0])
  cases.write_run(
      tmp_path / 'runs' / 'b', 'ceal', cases.CEAL[0], task={'model': 'row'}
  )
  cases.assert_refused(capsys, _draw(tmp_path), 'must be of one task')
