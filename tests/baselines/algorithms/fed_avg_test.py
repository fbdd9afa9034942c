"""FedAvg against its transcription, with its bits."""

import pytest

from baselines.algorithms import fed_avg
from tests.baselines.algorithms import rival_cases


def _check(**changes):
  return rival_cases.check(
      fed_avg.build_fed_avg, 'fed_avg', **changes
  )


def test_x_to_1e9_and_bits_exactly_in_float64():
  _check(rounds=8)


def test_xla_and_plain_kernels_agree():
  _check(jit='on')


def test_x_to_1e5_and_bits_exactly_in_float32():
  assert _check(dtype='float32', rounds=8) == 8


@pytest.mark.parametrize('num_clients', [1, 2, 99, 100, 101])
def test_cohorts(num_clients):
  _check(num_clients=num_clients, rounds=2)


def test_11_bits_of_a_float_message():
  process = fed_avg.build_fed_avg(
      rival_cases.build_linear_model([1.0] * 30, 'float32'),
      local_steps=2, batch_size=1, step_size=0.1,
  )
  program = rival_cases.compiled(process)
  state, metrics = program.next(
      program.initialize(), rival_cases.linear_cohort(10, 2, 'float32')
  )
  assert metrics.uplink_bits == metrics.downlink_bits == 960
  assert metrics.total_uplink_bits == int(state.total_uplink_bits) == 9600
