"""Mean curves: linear regret, bits in steps."""

import math

import numpy as np
import pytest

from baselines.figures import horizon_runs
from baselines.figures import regret_curves
from tests.figures import horizon_cases as cases


def _curves(path):
  return regret_curves.curve_table(
      horizon_runs.load_groups([path], regret_curves.COLUMNS)
  )


def test_mean_is_over_runs_interpolated_on_the_times_of_both(tmp_path):
  curves = _curves(cases.write_all(tmp_path))
  ceal = curves[curves.algorithm == 'CEAL']
  assert ceal.time_used.tolist() == [0, 10, 20, 40, 60, 100]
  # Run 1: 0, 4, 6, 10, 12, 16; run 2: 0, 3, 6, 10, 14, 20.
  assert ceal.cumulative_regret_mean.tolist() == [0, 3.5, 6, 10, 13, 18]
  root = math.sqrt(2)
  assert ceal.cumulative_regret_sd.tolist() == pytest.approx(
      [0, 1 / root, 0, 0, 2 / root, 4 / root], abs=1e-12
  )
  assert set(ceal.runs) == {2}


def test_bits_count_from_the_end_of_an_exchange(tmp_path):
  curves = _curves(cases.write_all(tmp_path))
  ceal = curves[curves.algorithm == 'CEAL']
  # Run 1: 0, 10, 10, 18, 18, 18; run 2: 0, 0, 10, 10, 20, 20.
  assert ceal.cumulative_uplink_bits_mean.tolist() == [0, 5, 10, 14, 19, 19]


def test_lines_follow_each_other_and_diverged_runs_are_left_out(tmp_path):
  cases.write_all(tmp_path)
  cases.write_run(
      tmp_path / 'x', 'fed_avg', cases.FED_AVG[0], seed=3, status='diverged'
  )
  cases.write_run(
      tmp_path / 'y', 'ceal', cases.CEAL[0], step_size=9.0, status='diverged'
  )
  curves = _curves(tmp_path)
  assert list(curves.algorithm.unique()) == [
      'FedAvg', 'FedPAQ', 'CEAL, step_size 0.5'
  ]
  mean = curves[curves.algorithm == 'FedAvg'].cumulative_regret_mean
  assert mean.tolist() == [0, 15, 19]


def test_one_run_has_no_deviation(tmp_path):
  cases.write_run(tmp_path / 'a', 'ceal', cases.CEAL[0])
  curves = _curves(tmp_path)
  assert np.isnan(curves.cumulative_regret_sd).all()
  assert curves.cumulative_regret_mean.tolist() == [0, 4, 10, 16]
