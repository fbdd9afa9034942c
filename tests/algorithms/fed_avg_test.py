"""FedAvg, beyond what `rival_transcriptions_test` checks of all."""

from baselines.algorithms import fed_avg
from tests.algorithms import rival_cases


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
