"""Table 1 from the command line."""

import pandas as pd

from baselines.figures import main
from tests.figures import horizon_cases
from tests.figures import rate_cases as cases
from tests.figures import table1_test


def _draw(tmp_path, *arguments):
  return main.main([
      'table1', '--runs', str(tmp_path / 'runs'), '--output',
      str(tmp_path / 'new' / 'a.md'), *arguments,
  ])


def test_markdown_and_csv_are_written(tmp_path, capsys):
  cases.write_all(tmp_path / 'runs')
  csv = tmp_path / 'new' / 'a.csv'
  assert _draw(tmp_path, '--csv', str(csv)) == 0
  lines = (tmp_path / 'new' / 'a.md').read_text().splitlines()
  assert lines[2] == (
      '| FEMNIST | 3,400 | 671,585 | femnist (synthetic) | 2 | - |'
  )
  assert pd.read_csv(csv).paper_clients.tolist() == [3400, 500, 715, 342477]
  said = capsys.readouterr().out.splitlines()
  assert len(said) == 1 + 4 + 2


def test_data_that_are_gone_are_refused(tmp_path, capsys):
  gone = {'data_source': 'cache', 'data_dir': str(tmp_path / 'gone')}
  cases.write_all(tmp_path / 'runs', task=gone)
  horizon_cases.assert_refused(
      capsys, _draw(tmp_path), f"'{tmp_path / 'gone'}'. Give --data_dir, the"
  )


def test_data_may_be_in_another_folder(tmp_path, capsys):
  gone = {'data_source': 'cache', 'data_dir': 'gone'}
  cases.write_all(tmp_path / 'runs', task=gone)
  data = tmp_path / 'data'
  table1_test.write_database(data / 'emnist_all.sqlite', 'all_train', [2, 5])
  assert _draw(tmp_path, '--data_dir', str(data)) == 0
  assert '| femnist (cache) | 2 | 7 |' in (
      tmp_path / 'new' / 'a.md'
  ).read_text()
  assert not capsys.readouterr().err
