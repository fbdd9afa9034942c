"""Changed settings are named, and compared with the right runs."""

import pytest

from baselines.figures import horizon_runs
from baselines.figures import outcomes
from baselines.figures import sensitivity_table
from tests.figures import horizon_cases as cases


def _groups(*folders):
  return horizon_runs.load_groups(folders, outcomes.COLUMNS)


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


def test_variants_are_named_by_what_differs_from_the_base(tmp_path):
  table = sensitivity_table.sensitivity_table(_groups(_write_changes(tmp_path)))
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
  groups = _groups(tmp_path / 'a', tmp_path / 'b')
  table = sensitivity_table.sensitivity_table(groups)
  assert table.variant.tolist() == ['base', 'clip False']
  assert table.uplink_percent_of_fed_paq.tolist() == [23.75, 22.5]
  assert table.uplink_percent_of_fed_avg.tolist() == [2.96875, 2.8125]
  assert table.downlink_percent_of_fed_avg.tolist() == [2.5, 13 / 6.4]
  texts = sensitivity_table.sensitivity_texts(table)
  assert texts.values.tolist()[1] == [
      'scaled_regression row_sum (synthetic)', 'clip False', 'signed_unary',
      '1', '16.00', '18.00', '13.00', '2.0', '22.5%', '2.8%', '2.0%',
  ]


def test_of_two_the_one_of_more_runs_is_the_base(tmp_path):
  for i, clip in enumerate((False, True, True)):
    cases.write_run(tmp_path / f'{i}', 'ceal', cases.CEAL[0], seed=i, clip=clip)
  bases = sensitivity_table.find_bases(_groups(tmp_path))
  assert [base.settings['clip'] for base in bases.values()] == [True]


def test_each_task_has_a_base(tmp_path):
  _write_changes(tmp_path / 'a', task={'model': 'row'})
  cases.write_run(tmp_path / 'b', 'ceal', cases.CEAL[0], clip=False)
  groups = _groups(tmp_path / 'a', tmp_path / 'b')
  table = sensitivity_table.sensitivity_table(groups)
  assert table.variant.tolist().count('base') == 2
  notes = sensitivity_table.notes(groups)
  assert notes[2:4] == [
      f'The base of scaled_regression {model} (synthetic): horizon 100, '
      'step_size 0.5, regret_every 1, grid coordinate, '
      f'clip {clip}, code signed_unary.'
      for model, clip in (('row', True), ('row_sum', False))
  ]


def test_runs_without_ceal_are_refused(tmp_path):
  cases.write_run(tmp_path / 'a', 'fed_avg', cases.FED_AVG[0])
  with pytest.raises(ValueError, match='must hold a run of ceal, found none'):
    sensitivity_table.sensitivity_table(_groups(tmp_path))


def test_settings_that_the_theory_gives_are_changes(tmp_path):
  for number in range(2):
    cases.write_run(
        tmp_path / str(number), 'ceal', cases.CEAL[number], seed=number + 1,
        noise_scale=0.6,
    )
  cases.write_run(tmp_path / 'theory', 'ceal', cases.CEAL[0])
  groups = _groups(tmp_path)
  table = sensitivity_table.sensitivity_table(groups)
  assert table.variant.tolist() == ['base', 'noise_scale by default']
