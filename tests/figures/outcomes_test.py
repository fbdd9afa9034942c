"""Means, deviations and ratios of what runs have come to."""

import math

import numpy as np
import pandas as pd
import pytest

from baselines.figures import horizon_runs
from baselines.figures import outcomes
from tests.figures import horizon_cases as cases


def _groups(*folders):
  return horizon_runs.load_groups(folders, outcomes.COLUMNS)


def _table(*folders):
  return outcomes.outcome_table(_groups(*folders))


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
  texts = outcomes.outcome_texts(table)
  assert texts.iloc[3].tolist() == [
      '0', '1', '0', '-', '-', '-', '-', '-', '-', '-'
  ]


def test_texts_are_short(tmp_path):
  texts = outcomes.outcome_texts(_table(cases.write_all(tmp_path)))
  assert texts.iloc[2].to_dict() == {
      'runs': '2', 'regret': '18.00 (2.83)', 'uplink': '19.00 (1.41)',
      'downlink': '16.00 (4.24)', 'rounds': '2.0', 'uplink / FedPAQ': '23.8%',
      'uplink / FedAvg': '3.0%', 'downlink / FedAvg': '2.5%',
  }


def test_deviation_is_of_a_sample():
  assert outcomes.mean_and_deviation([1.0, 3.0, 5.0]) == (3.0, 2.0)
  mean, spread = outcomes.mean_and_deviation([4.0])
  assert mean == 4.0 and math.isnan(spread)
  assert all(map(math.isnan, outcomes.mean_and_deviation([])))


def test_run_without_a_round_has_sent_nothing(tmp_path):
  cases.write_run(tmp_path / 'a', 'ceal', ())
  (group,) = _groups(tmp_path)
  assert outcomes.last_value(group.runs[0], 'cumulative_uplink_bits') == 0.0
  assert isinstance(outcomes.outcome_table([group]), pd.DataFrame)
