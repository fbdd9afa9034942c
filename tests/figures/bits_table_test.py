"""Table I: names, numbers and notes."""

from baselines.figures import bits_table
from baselines.figures import horizon_runs
from baselines.figures import outcomes
from tests.figures import horizon_cases as cases


def test_rows_name_task_and_algorithm_and_code(tmp_path):
  cases.write_all(tmp_path / 'a')
  cases.write_all(tmp_path / 'b', task={'task': 'mnist_logistic'}, horizon=50)
  groups = horizon_runs.load_groups(
      [tmp_path / 'a', tmp_path / 'b'], outcomes.COLUMNS
  )
  table = bits_table.bits_table(groups)
  assert list(table.columns[:3]) == ['task', 'algorithm', 'code']
  assert table.algorithm.tolist() == ['FedAvg', 'FedPAQ', 'CEAL'] * 2
  assert table.task[2] == 'scaled_regression row_sum (synthetic)'
  assert table.task[3] == 'mnist_logistic row_sum (synthetic)'
  assert table.uplink_percent_of_fed_paq.tolist() == [800, 100, 23.75] * 2
  texts = bits_table.bits_texts(table)
  assert texts.iloc[5].tolist()[1:5] == [
      'CEAL', 'signed_unary', '2', '18.00 (2.83)'
  ]


def test_code_is_a_column_and_in_no_name(tmp_path):
  cases.write_all(tmp_path)
  cases.write_run(tmp_path / 'x', 'ceal', cases.CEAL[0], code='elias_gamma')
  table = bits_table.bits_table(
      horizon_runs.load_groups([tmp_path], outcomes.COLUMNS)
  )
  assert table.algorithm.tolist() == ['FedAvg', 'FedPAQ', 'CEAL', 'CEAL']
  assert table.code.tolist()[2:] == ['elias_gamma', 'signed_unary']


def test_notes_tell_of_the_runs_of_each_task(tmp_path):
  cases.write_all(tmp_path / 'a', regret_every=25)
  cases.write_all(tmp_path / 'b', task={'task': 'mnist_logistic'}, horizon=50)
  groups = horizon_runs.load_groups(
      [tmp_path / 'a', tmp_path / 'b'], outcomes.COLUMNS
  )
  notes = bits_table.notes(groups)
  assert notes[0].startswith('Runs: task scaled_regression row_sum (synthet')
  assert 'every 25 queries' in notes[0] and 'every' not in notes[1]
  assert 'T = 50' in notes[1] and notes[2:] == list(outcomes.NOTES)
