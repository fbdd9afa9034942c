"""Regret, bits, their ratios and codes; changed settings of CEAL."""

import math

import numpy as np
import pandas as pd
import pytest

from baselines.figures import bits
from baselines.results import groups as groups_lib
from baselines.results import runs as runs_lib
from tests.results import horizon_cases as cases


def _write_changes(path, **settings):
  """Writes a base, which has fewer runs than one of its four variants."""
  changes = (
      {}, {'clip': False}, {'step_size': 0.25}, {'grid': 'vector'},
      {'grid': 'vector', 'step_size': 0.25},
  )
  for i, change in enumerate(changes):
    cases.write_run(
        path / f'{i}', 'ceal', cases.CEAL[i % 2], **{**settings, **change}
    )
  cases.write_run(
      path / '5', 'ceal', cases.CEAL[0], seed=2, **{**settings, 'clip': False}
  )
  return path


def _groups_outcomes(*folders):
  return groups_lib.group_by_algorithm(
      runs_lib.load_runs(folders), bits.COLUMNS)


def _table(*folders):
  return bits.outcome_table(_groups_outcomes(*folders))


def test_numbers_are_exact(tmp_path):
  """CEAL: regret 18 (sd 2 sqrt 2), 19 bits up, 16 down, 2 rounds."""
  table = _table(cases.write_all(tmp_path))
  assert table.code.tolist() == ['floats', 'fixed_width', 'signed_unary']
  assert table.runs.tolist() == [2, 2, 2]
  assert table.regret_mean.tolist() == [19, 22, 18]
  root = math.sqrt(2)
  assert table.regret_sd.tolist() == pytest.approx(
      [10 / root, 4 / root, 4 / root], abs=1e-12
  )
  assert table.uplink_mean.tolist() == [640, 80, 19]
  assert table.uplink_sd.tolist() == pytest.approx([0, 0, 2 / root], abs=1e-12)
  assert table.downlink_mean.tolist() == [640, 640, 16]
  assert table.downlink_sd.tolist() == pytest.approx(
      [0, 0, 6 / root], abs=1e-12
  )
  # The last exchange of a run of CEAL sends nothing.
  assert table.rounds_mean.tolist() == [2, 2, 2]


def test_ratios_are_exact(tmp_path):
  """CEAL: 19/80, 19/640 up, 16/640 down."""
  table = _table(cases.write_all(tmp_path))
  assert table.uplink_percent_of_fed_paq.tolist() == [800, 100, 23.75]
  assert table.uplink_percent_of_fed_avg.tolist() == [100, 12.5, 2.96875]
  assert table.downlink_percent_of_fed_avg.tolist() == [100, 100, 2.5]


def test_ratios_are_to_runs_of_the_same_experiment(tmp_path):
  cases.write_all(tmp_path / 'a')
  cases.write_run(tmp_path / 'b', 'ceal', cases.CEAL[0], horizon=50)
  cases.write_run(
      tmp_path / 'c', 'ceal', cases.CEAL[0], run={'batch_size': 2}
  )
  cases.write_run(
      tmp_path / 'd', 'ceal', cases.CEAL[0], step_size=1.0, regret_every=25
  )
  table = _table(*(tmp_path / name for name in 'abcd'))
  ceal = table[table.code == 'signed_unary']
  shares = ceal.uplink_percent_of_fed_avg
  # Only the first and the last agree with FedAvg's runs; 18 / 640 = 2.8125%.
  assert sorted(shares.dropna()) == [2.8125, 2.96875] and len(shares) == 4


def test_ratios_are_to_the_usual_code_where_there_are_several(tmp_path):
  cases.write_all(tmp_path)
  fewer = [e._replace(uplink=e.uplink / 2) for e in cases.FED_PAQ[0]]
  cases.write_run(tmp_path / 'x', 'fed_paq', fewer, code='run_length')
  table = _table(tmp_path)
  assert table.code.tolist()[1:3] == ['fixed_width', 'run_length']
  assert table.uplink_percent_of_fed_paq.tolist() == [800, 100, 50, 23.75]


def test_no_ratio_to_one_of_several(tmp_path):
  cases.write_all(tmp_path)
  cases.write_run(tmp_path / 'x', 'fed_avg', cases.FED_AVG[0], local_steps=10)
  table = _table(tmp_path)
  assert table.uplink_percent_of_fed_avg.isna().all()
  assert table.uplink_percent_of_fed_paq.notna().all()


def test_runs_that_have_not_finished_are_counted_only(tmp_path):
  cases.write_all(tmp_path)
  for seed, status in enumerate(('diverged', 'diverged', 'failed'), 3):
    cases.write_run(
        tmp_path / f'x{seed}', 'fed_avg', cases.CEAL[0], seed=seed,
        status=status,
    )
  cases.write_run(
      tmp_path / 'y', 'ceal', cases.CEAL[0], step_size=9.0, status='diverged'
  )
  table = _table(tmp_path)
  assert table.diverged.tolist() == [2, 0, 0, 1]
  assert table.unfinished.tolist() == [1, 0, 0, 0]
  assert table.regret_mean[0] == 19 and np.isnan(table.regret_mean[3])
  texts = bits.outcome_texts(table)
  assert texts.iloc[3].tolist() == [
      '0', '1', '0', '-', '-', '-', '-', '-', '-', '-'
  ]


def test_texts_are_short(tmp_path):
  texts = bits.outcome_texts(_table(cases.write_all(tmp_path)))
  assert texts.iloc[2].to_dict() == {
      'runs': '2', 'regret': '18.00 (2.83)', 'uplink': '19.00 (1.41)',
      'downlink': '16.00 (4.24)', 'rounds': '2.0', 'uplink / FedPAQ': '23.8%',
      'uplink / FedAvg': '3.0%', 'downlink / FedAvg': '2.5%',
  }


def test_deviation_is_of_a_sample():
  assert bits.mean_and_deviation([1.0, 3.0, 5.0]) == (3.0, 2.0)
  mean, spread = bits.mean_and_deviation([4.0])
  assert mean == 4.0 and math.isnan(spread)
  assert all(map(math.isnan, bits.mean_and_deviation([])))


def test_run_without_a_round_has_sent_nothing(tmp_path):
  cases.write_run(tmp_path / 'a', 'ceal', ())
  (group,) = _groups_outcomes(tmp_path)
  assert bits._last_value(group.runs[0], 'cumulative_uplink_bits') == 0.0
  assert isinstance(bits.outcome_table([group]), pd.DataFrame)


def test_rows_name_task_and_algorithm_and_code(tmp_path):
  cases.write_all(tmp_path / 'a')
  cases.write_all(tmp_path / 'b', task={'task': 'mnist_logistic'}, horizon=50)
  groups = groups_lib.group_by_algorithm(
      runs_lib.load_runs([tmp_path / 'a', tmp_path / 'b']), bits.COLUMNS
  )
  table = bits.bits_table(groups)
  assert list(table.columns[:3]) == ['task', 'algorithm', 'code']
  assert table.algorithm.tolist() == ['FedAvg', 'FedPAQ', 'CEAL'] * 2
  assert table.task[2] == 'scaled_regression row_sum (synthetic)'
  assert table.task[3] == 'mnist_logistic row_sum (synthetic)'
  assert table.uplink_percent_of_fed_paq.tolist() == [800, 100, 23.75] * 2
  texts = bits.outcome_texts(table, ('task', 'algorithm', 'code'))
  assert texts.iloc[5].tolist()[1:5] == [
      'CEAL', 'signed_unary', '2', '18.00 (2.83)'
  ]


def test_code_is_a_column_and_in_no_name(tmp_path):
  cases.write_all(tmp_path)
  cases.write_run(tmp_path / 'x', 'ceal', cases.CEAL[0], code='elias_gamma')
  table = bits.bits_table(
      groups_lib.group_by_algorithm(
      runs_lib.load_runs([tmp_path]), bits.COLUMNS)
  )
  assert table.algorithm.tolist() == ['FedAvg', 'FedPAQ', 'CEAL', 'CEAL']
  assert table.code.tolist()[2:] == ['elias_gamma', 'signed_unary']


def test_notes_tell_of_the_runs_of_each_task(tmp_path):
  cases.write_all(tmp_path / 'a', regret_every=25)
  cases.write_all(tmp_path / 'b', task={'task': 'mnist_logistic'}, horizon=50)
  groups = groups_lib.group_by_algorithm(
      runs_lib.load_runs([tmp_path / 'a', tmp_path / 'b']), bits.COLUMNS
  )
  notes = bits.bits_notes(groups)
  assert notes[0].startswith('Runs: task scaled_regression row_sum (synthet')
  assert 'every 25 queries' in notes[0] and 'every' not in notes[1]
  assert 'T = 50' in notes[1] and notes[2:] == list(bits.NOTES)


def _groups_codes_table(tmp_path):
  cases.write_all(tmp_path)
  for seed, exchanges in enumerate(cases.CEAL, 1):
    cases.write_run(
        tmp_path / f'x{seed}', 'ceal',
        [e._replace(uplink=2 * e.uplink) for e in exchanges], seed=seed,
        code='elias_gamma',
    )
  return groups_lib.group_by_algorithm(
      runs_lib.load_runs([tmp_path]), bits._LINKS)


def test_bits_of_each_code_are_exact(tmp_path):
  table = bits.codes_table(_groups_codes_table(tmp_path))
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
  texts = bits.codes_texts(bits.codes_table(_groups_codes_table(tmp_path)))
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
  groups = groups_lib.group_by_algorithm(
      runs_lib.load_runs([tmp_path]), bits._LINKS)
  texts = bits.codes_texts(bits.codes_table(groups))
  assert list(texts.columns[3:]) == ['signed_unary', 'new']
  assert [(row[0].split()[1], *row[2:]) for row in texts.values.tolist()] == [
      ('row_sum', 'uplink', '-', '18.00'),
      ('row_sum', 'downlink', '-', '13.00'),
      ('row', 'uplink', '18.00', '-'), ('row', 'downlink', '13.00', '-'),
  ]


def test_notes_say_what_bits_are(tmp_path):
  notes = bits.codes_notes(_groups_codes_table(tmp_path))
  assert len(notes) == 2 and 'mean of 2 runs' in notes[0]
  assert 'floats: the numbers as they are' in notes[1]


def _groups_sensitivity_table(*folders):
  return groups_lib.group_by_algorithm(
      runs_lib.load_runs(folders), bits.COLUMNS)


def test_variants_are_named_by_what_differs_from_the_base(tmp_path):
  table = bits.sensitivity_table(
      _groups_sensitivity_table(_write_changes(tmp_path))
  )
  assert table.variant.tolist() == [
      'base', 'clip False', 'grid vector', 'step_size 0.25',
      'grid vector, step_size 0.25',
  ]
  assert table.runs.tolist() == [1, 2, 1, 1, 1]
  assert table.regret_mean.tolist() == [16, 18, 20, 16, 16]
  assert table.uplink_percent_of_fed_paq.isna().all()


def test_rivals_are_compared_with_and_not_listed(tmp_path):
  cases.write_all(tmp_path / 'a')
  cases.write_run(tmp_path / 'b', 'ceal', cases.CEAL[0], clip=False)
  groups = _groups_sensitivity_table(tmp_path / 'a', tmp_path / 'b')
  table = bits.sensitivity_table(groups)
  assert table.variant.tolist() == ['base', 'clip False']
  assert table.uplink_percent_of_fed_paq.tolist() == [23.75, 22.5]
  assert table.uplink_percent_of_fed_avg.tolist() == [2.96875, 2.8125]
  assert table.downlink_percent_of_fed_avg.tolist() == [2.5, 13 / 6.4]
  texts = bits.outcome_texts(table, ('task', 'variant', 'code'))
  assert texts.values.tolist()[1] == [
      'scaled_regression row_sum (synthetic)', 'clip False', 'signed_unary',
      '1', '16.00', '18.00', '13.00', '2.0', '22.5%', '2.8%', '2.0%',
  ]


def test_of_two_the_one_of_more_runs_is_the_base(tmp_path):
  for i, clip in enumerate((False, True, True)):
    cases.write_run(tmp_path / f'{i}', 'ceal', cases.CEAL[0], seed=i, clip=clip)
  bases = bits.find_bases(_groups_sensitivity_table(tmp_path))
  assert [base.settings['clip'] for base in bases.values()] == [True]


def test_each_task_has_a_base(tmp_path):
  _write_changes(tmp_path / 'a', task={'model': 'row'})
  cases.write_run(tmp_path / 'b', 'ceal', cases.CEAL[0], clip=False)
  groups = _groups_sensitivity_table(tmp_path / 'a', tmp_path / 'b')
  table = bits.sensitivity_table(groups)
  assert table.variant.tolist().count('base') == 2
  notes = bits.sensitivity_notes(groups)
  assert notes[2:4] == [
      f'The base of scaled_regression {model} (synthetic): horizon 100, '
      'step_size 0.5, regret_every 1, grid coordinate, '
      f'clip {clip}, code signed_unary.'
      for model, clip in (('row', True), ('row_sum', False))
  ]


def test_runs_without_ceal_are_refused(tmp_path):
  cases.write_run(tmp_path / 'a', 'fed_avg', cases.FED_AVG[0])
  with pytest.raises(ValueError, match='must hold a run of ceal, found none'):
    bits.sensitivity_table(_groups_sensitivity_table(tmp_path))


def test_settings_that_the_theory_gives_are_changes(tmp_path):
  for number in range(2):
    cases.write_run(
        tmp_path / str(number), 'ceal', cases.CEAL[number], seed=number + 1,
        noise_scale=0.6,
    )
  cases.write_run(tmp_path / 'theory', 'ceal', cases.CEAL[0])
  groups = _groups_sensitivity_table(tmp_path)
  table = bits.sensitivity_table(groups)
  assert table.variant.tolist() == ['base', 'noise_scale by default']
