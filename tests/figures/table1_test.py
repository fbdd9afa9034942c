"""Clients and examples of each data set, counted in small databases."""

import contextlib
import math
import sqlite3

import pandas as pd
import pytest

from baselines.figures import main
from baselines.figures import table1
from baselines.results import runs as runs_lib
from tests.results import horizon_cases
from tests.results import rate_cases as cases


def write_database(path, split, counts):
  """Writes a database of TFF: clients with these numbers of examples."""
  path.parent.mkdir(parents=True, exist_ok=True)
  rows = [
      (f'c{i}', name, count)
      for name in (split, split.replace('train', 'test'))
      for i, count in enumerate(counts)
  ]
  with contextlib.closing(sqlite3.connect(path)) as connection, connection:
    connection.execute(
        'CREATE TABLE client_metadata (client_id, split_name, num_examples)'
    )
    connection.execute(
        'CREATE TABLE examples (split_name, client_id, '
        'serialized_example_proto)'
    )
    connection.executemany('INSERT INTO client_metadata VALUES (?, ?, ?)', rows)


def _run(tmp_path, name, task, source, folder=None):
  path = cases.write_run(
      tmp_path / name, *cases.RUNS[0],
      task={'task': task, 'data_source': source, 'data_dir': folder},
  )
  return runs_lib.read_run(path)


def test_papers_numbers_are_those_of_the_specification():
  assert [(d.clients, d.examples) for d in table1.DATA_SETS] == [
      (3400, 671585), (500, 50000), (715, 16068), (342477, 135818730)
  ]


def test_clients_and_examples_of_a_database(tmp_path):
  data = tmp_path / 'data'
  write_database(data / 'cifar100.sqlite', 'train', [3, 4, 5])
  write_database(data / 'emnist_all.sqlite', 'digits_only_train', [2, 2])
  table = table1.count_table([
      _run(tmp_path, 'a', 'cifar100', 'cache', str(data)),
      _run(tmp_path, 'b', 'emnist_digits', 'cache', str(data)),
  ])
  assert table.data_set.tolist() == [
      'FEMNIST', 'CIFAR-100', 'Shakespeare', 'Stack Overflow'
  ]
  assert table.used.tolist() == [
      'emnist_digits (cache)', 'cifar100 (cache)', 'not run', 'not run'
  ]
  assert table.clients.tolist()[:2] == [2.0, 3.0]
  assert table.examples.tolist()[:2] == [4.0, 12.0]
  assert math.isnan(table.clients[2])
  texts = table1.count_texts(table)
  assert texts.values.tolist()[1:3] == [
      ['CIFAR-100', '500', '50,000', 'cifar100 (cache)', '3', '12'],
      ['Shakespeare', '715', '16,068', 'not run', '-', '-'],
  ]


def test_two_tasks_on_one_file_are_one_row(tmp_path):
  write_database(tmp_path / 'stackoverflow.sqlite', 'train', [7])
  table = table1.count_table([
      _run(tmp_path, name, f'stackoverflow_{name}', 'cache', str(tmp_path))
      for name in ('word', 'tag')
  ])
  last = table.iloc[3]
  assert last.used == 'stackoverflow_tag, stackoverflow_word (cache)'
  assert (last.clients, last.examples) == (1.0, 7.0) and len(table) == 4


def test_generated_clients_have_no_count_of_examples(tmp_path):
  table = table1.count_table([_run(tmp_path, 'a', 'shakespeare', 'synthetic')])
  assert table.clients[2] == 3.0 and math.isnan(table.examples[2])


def test_runs_of_other_tasks_are_refused(tmp_path):
  with pytest.raises(ValueError, match='found none among 1 runs'):
    table1.count_table([_run(tmp_path, 'a', 'digits', 'embedded')])


def test_data_that_are_gone_are_named(tmp_path):
  run = _run(tmp_path, 'a', 'cifar100', 'cache', str(tmp_path / 'gone'))
  with pytest.raises(FileNotFoundError) as caught:
    table1.count_table([run])
  assert str(caught.value) == (
      f'Run {tmp_path / "a"} was trained on cifar100.sqlite, whose clients and '
      'examples this table counts; there is none in data_dir '
      f"'{tmp_path / 'gone'}'. Give --data_dir, the folder that holds "
      'cifar100.sqlite now.'
  )


@pytest.mark.parametrize('source', ['cache', 'download'])
def test_relative_folders_are_explained(tmp_path, monkeypatch, source):
  monkeypatch.chdir(tmp_path)
  run = _run(tmp_path, 'a', 'cifar100', source, 'data')
  with pytest.raises(FileNotFoundError) as caught:
    table1.count_table([run])
  assert (
      f"in data_dir 'data', relative to the working directory, {tmp_path}. Give"
  ) in str(caught.value)
  # Where the run was trained, its own data_dir is there.
  write_database(tmp_path / 'data' / 'cifar100.sqlite', 'train', [3, 4])
  assert table1.count_table([run]).clients[1] == 2.0


def test_damaged_data_name_the_run(tmp_path):
  (tmp_path / 'cifar100.sqlite').write_text('no database')
  run = _run(tmp_path, 'a', 'cifar100', 'cache', str(tmp_path))
  with pytest.raises(ValueError, match='a was trained on .* is not an SQLite'):
    table1.count_table([run])


def test_folder_given_takes_the_place_of_those_recorded(tmp_path):
  data = tmp_path / 'now'
  write_database(data / 'cifar100.sqlite', 'train', [3, 4, 5])
  write_database(data / 'shakespeare.sqlite', 'train', [6])
  runs = [
      _run(tmp_path, 'a', 'cifar100', 'cache', 'data'),
      _run(tmp_path, 'b', 'cifar100', 'cache', str(tmp_path / 'elsewhere')),
      _run(tmp_path, 'c', 'shakespeare', 'cache', 'data'),
      _run(tmp_path, 'd', 'femnist', 'synthetic'),
  ]
  table = table1.count_table(runs, str(data))
  assert table.used.tolist() == [
      'femnist (synthetic)', 'cifar100 (cache)', 'shakespeare (cache)',
      'not run',
  ]
  assert table.examples.tolist()[1:3] == [12.0, 6.0]
  with pytest.raises(ValueError, match='ignored: no run used a database'):
    table1.count_table(runs[3:], str(data))


def test_counts_of_real_data_are_those_of_its_description(
    tmp_path, shared_data
):
  folder = str(shared_data / 'tff_cache')
  table = table1.count_table([
      _run(tmp_path, task, task, 'cache', folder)
      for task in ('femnist', 'cifar100', 'shakespeare', 'stackoverflow_tag')
  ])
  assert table[['clients', 'examples']].values.tolist() == [
      [9, 649], [13, 1300], [1122, 27112], [89, 10624]
  ]


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
  write_database(data / 'emnist_all.sqlite', 'all_train', [2, 5])
  assert _draw(tmp_path, '--data_dir', str(data)) == 0
  assert '| femnist (cache) | 2 | 7 |' in (
      tmp_path / 'new' / 'a.md'
  ).read_text()
  assert not capsys.readouterr().err
