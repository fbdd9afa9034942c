"""Bits under each code."""

import numpy as np

from baselines.figures import codes_table
from baselines.figures import horizon_runs
from baselines.figures import outcomes
from tests.figures import horizon_cases as cases


def _groups(tmp_path):
  cases.write_all(tmp_path)
  for seed, exchanges in enumerate(cases.CEAL, 1):
    cases.write_run(
        tmp_path / f'x{seed}', 'ceal',
        [e._replace(uplink=2 * e.uplink) for e in exchanges], seed=seed,
        code='elias_gamma',
    )
  return horizon_runs.load_groups([tmp_path], outcomes.BITS)


def test_bits_of_each_code_are_exact(tmp_path):
  table = codes_table.codes_table(_groups(tmp_path))
  assert table.link.tolist() == ['uplink'] * 4 + ['downlink'] * 4
  assert table.algorithm.tolist() == ['FedAvg', 'FedPAQ', 'CEAL', 'CEAL'] * 2
  assert table.code.tolist()[:4] == [
      'floats', 'fixed_width', 'elias_gamma', 'signed_unary'
  ]
  assert table.bits_mean.tolist() == [640, 80, 38, 19, 640, 640, 16, 16]
  np.testing.assert_allclose(
      table.bits_sd[:4], [0, 0, 2 * np.sqrt(2), np.sqrt(2)], atol=1e-12
  )
  assert set(table.runs) == {2}


def test_a_row_per_algorithm_and_link_a_column_per_code(tmp_path):
  texts = codes_table.codes_texts(codes_table.codes_table(_groups(tmp_path)))
  assert list(texts.columns) == [
      'task', 'algorithm', 'link', 'floats', 'fixed_width', 'signed_unary',
      'elias_gamma',
  ]
  assert texts.values.tolist()[2][1:] == [
      'CEAL', 'uplink', '-', '-', '19.00 (1.41)', '38.00 (2.83)'
  ]
  assert len(texts) == 6
  assert texts.values.tolist()[3][1:] == [
      'FedAvg', 'downlink', '640.0 (0.0)', '-', '-', '-'
  ]


def test_each_task_has_rows_of_its_own_and_a_new_code_a_column(tmp_path):
  cases.write_run(tmp_path / 'a', 'ceal', cases.CEAL[0], code='new')
  cases.write_run(tmp_path / 'b', 'ceal', cases.CEAL[0], task={'model': 'row'})
  groups = horizon_runs.load_groups([tmp_path], outcomes.BITS)
  texts = codes_table.codes_texts(codes_table.codes_table(groups))
  assert list(texts.columns[3:]) == ['signed_unary', 'new']
  assert [(row[0].split()[1], *row[2:]) for row in texts.values.tolist()] == [
      ('row_sum', 'uplink', '-', '18.00'),
      ('row_sum', 'downlink', '-', '13.00'),
      ('row', 'uplink', '18.00', '-'), ('row', 'downlink', '13.00', '-'),
  ]


def test_notes_say_what_bits_are(tmp_path):
  notes = codes_table.notes(_groups(tmp_path))
  assert len(notes) == 2 and 'mean of 2 runs' in notes[0]
  assert 'floats: the numbers as they are' in notes[1]
