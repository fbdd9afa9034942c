"""metrics.csv: exact numbers, fixed columns, no torn rows."""

import numpy as np
import pytest

from baselines import command
from baselines.results import records
from baselines.settings import algorithms
from baselines.settings import experiment

_COLUMNS = records.columns_of(experiment.ExperimentConfig())
_EMPTY = ',' * (len(_COLUMNS) - 1)


def _write(path, count, kept=()):
  writer = records.MetricsWriter(path, _COLUMNS, kept)
  for r in range(len(kept), len(kept) + count):
    writer.write({'round': r, 'update_norm': np.float32(0.1) * r})
  writer.close()


def test_numbers_are_shortest_texts_that_read_back_exactly():
  row = records.format_row({
      'round': 3,
      'client_learning_rate': np.float32(0.05),
      'server_learning_rate': np.float64(0.1),
      'update_norm': np.float32(1) / np.float32(3),
      'population_loss': 1 / 3,
      'clients_used': np.int32(7),
      'loss_before_training': float('nan'),
      'test_loss': None,
  }, _COLUMNS)
  assert row['client_learning_rate'] == '0.05'
  assert np.float32(row['update_norm']) == np.float32(1) / np.float32(3)
  assert float(row['population_loss']) == 1 / 3
  assert row['clients_used'] == '7'
  assert row['loss_before_training'] == 'nan'
  assert row['test_loss'] == row['examples_used'] == ''
  assert tuple(row) == _COLUMNS


def test_unknown_column_is_refused():
  with pytest.raises(ValueError, match='no such columns: .*losses'):
    records.format_row({'losses': 1.0}, _COLUMNS)


def test_row_can_be_read_while_the_file_is_open(tmp_path):
  writer = records.MetricsWriter(tmp_path / 'm.csv', _COLUMNS, [])
  row = writer.write({'round': 0, 'population_loss': 2.5})
  writer.flush_to_disk()
  assert records.read_rows(tmp_path / 'm.csv', _COLUMNS) == [row]
  writer.close()


def test_rows_kept_stay_as_they_are(tmp_path):
  path = tmp_path / 'm.csv'
  _write(path, 5)
  before = path.read_bytes()
  _write(path, 2, records.read_rows(path, _COLUMNS)[:3])
  assert path.read_bytes() == before


@pytest.mark.parametrize('cut', range(1, 25))
def test_torn_last_row_is_dropped(tmp_path, cut):
  path = tmp_path / 'm.csv'
  _write(path, 4)
  whole = records.read_rows(path, _COLUMNS)
  path.write_bytes(path.read_bytes()[:-cut])
  assert records.read_rows(path, _COLUMNS) == whole[:3]


@pytest.mark.parametrize('line', [
    '3,x' + _EMPTY[1:],  # not a number
    '4' + _EMPTY,  # a row is missing before it
    '3' + _EMPTY[1:],  # a cell is missing
])
def test_rows_from_the_first_bad_one_on_are_dropped(tmp_path, line):
  path = tmp_path / 'm.csv'
  _write(path, 3)
  with open(path, 'a', encoding='utf-8') as stream:
    stream.write(f'{line}\n3{_EMPTY}\n')
  assert len(records.read_rows(path, _COLUMNS)) == 3


@pytest.mark.parametrize('content', ['', 'round,client_lear'])
def test_file_without_whole_header_has_no_rows(tmp_path, content):
  path = tmp_path / 'm.csv'
  path.write_text(content)
  assert records.read_rows(path, _COLUMNS) == []
  assert records.read_rows(tmp_path / 'none.csv', _COLUMNS) == []


def test_other_columns_are_refused(tmp_path):
  path = tmp_path / 'm.csv'
  path.write_text('round,loss\n0,1.0\n')
  with pytest.raises(command.InputError, match='columns'):
    records.read_rows(path, _COLUMNS)


def test_without_evaluation_keeps_the_training_numbers():
  row = records.format_row({
      'round': 1, 'update_norm': 2.0, 'population_loss': 1.0,
      'test_accuracy': 0.5, 'evaluation_seconds': 3.0, 'round_seconds': 1.0,
  }, _COLUMNS)
  bare = records.without_evaluation(row)
  assert records.number(bare, 'update_norm') == 2.0
  assert bare['round_seconds'] == '1.0'
  for column in (*records.EVALUATION_COLUMNS, 'evaluation_seconds'):
    assert records.number(bare, column) is None


def _columns(algorithm, task='scaled_regression'):
  kind = algorithms.ALGORITHMS[algorithm].config_type
  return records.columns_of(
      experiment.ExperimentConfig(experiment.TaskConfig(task), kind())
  )


def test_columns_of_local_update_are_those_of_every_run():
  assert _COLUMNS == (
      'round', *records.TRAINING_COLUMNS, *algorithms.MESSAGES,
      *records.EVALUATION_COLUMNS, *records.MACHINE_COLUMNS,
  )
  quantized = experiment.ExperimentConfig(
      algorithm=experiment.LocalUpdateConfig(
          uplink_quantizer='qsgd', quantizer_resolution=3.0
      )
  )
  assert records.columns_of(quantized) == _COLUMNS


@pytest.mark.parametrize('algorithm', algorithms.ALGORITHMS)
def test_columns_are_in_one_order_each_once(algorithm):
  columns = _columns(algorithm)
  assert len(set(columns)) == len(columns)
  assert columns[0] == 'round'
  assert columns[-3:] == records.MACHINE_COLUMNS
  has_horizon = algorithms.ALGORITHMS[algorithm].has_horizon
  assert set(algorithms.MESSAGES) <= set(columns)
  assert ('stage' in columns) == (algorithm == 'ceal')
  assert (set(records.REGRET_COLUMNS) <= set(columns)) == has_horizon
  # Without a formula of f there is no regret.
  assert not set(records.REGRET_COLUMNS) & set(_columns(algorithm, 'digits'))


def test_file_of_another_algorithm_is_refused(tmp_path):
  path = tmp_path / 'm.csv'
  _write(path, 2)
  with pytest.raises(command.InputError, match='columns'):
    records.read_rows(path, _columns('fed_avg'))


def test_file_of_an_earlier_version_keeps_its_columns(tmp_path):
  path, columns = tmp_path / 'metrics.csv', records.columns_of(
      experiment.ExperimentConfig()
  )
  old = [c for c in columns if c not in algorithms.MESSAGES]
  writer = records.MetricsWriter(path, old, [])
  writer.write({'round': 0, 'population_loss': 2.5})
  writer.close()
  rows = records.read_rows(path, columns)
  assert list(rows[0]) == old
  writer = records.MetricsWriter(path, columns, rows)
  writer.write({'round': 1, 'update_norm': 0.5, 'time_used': 10})
  writer.close()
  assert path.read_text().splitlines()[0] == ','.join(old)
  rows = records.read_rows(path, columns)
  assert rows[1]['update_norm'] == '0.5' and 'time_used' not in rows[1]
  # Only columns of messages may be missing.
  path.write_text(','.join(c for c in old if c != 'update_norm') + '\n')
  with pytest.raises(command.InputError, match='not have the columns'):
    records.read_rows(path, columns)


def test_docstring_tells_of_every_column():
  for algorithm in algorithms.ALGORITHMS:
    for column in _columns(algorithm):
      assert column in records.__doc__


def test_quote_in_a_damaged_cell_ends_the_rows_before_it(tmp_path):
  path, columns = tmp_path / 'metrics.csv', ('round', 'loss_before_training')
  rows = [
      {'round': str(r), 'loss_before_training': '2.5'} for r in range(20000)
  ]
  records.MetricsWriter(path, columns, rows).close()
  text = path.read_text()
  assert len(text) > 131072
  path.write_text(text.replace('\n7,2', '\n7,"', 1))
  assert records.read_rows(path, columns) == rows[:7]


def test_file_that_was_removed_or_replaced_is_noticed(tmp_path):
  path = tmp_path / 'metrics.csv'
  writer = records.MetricsWriter(path, ('round',), [])
  writer.flush_to_disk()
  path.unlink()
  with pytest.raises(FileNotFoundError, match='was removed or replaced'):
    writer.flush_to_disk()
  path.write_text('round\n')
  with pytest.raises(FileNotFoundError, match='was removed or replaced'):
    writer.flush_to_disk()
  writer.close()
