"""FedCOM against its transcription, with its bits."""

import numpy as np
import pytest

from baselines.algorithms import fed_com
from baselines.algorithms import fed_paq
from tests.baselines.algorithms import rival_cases

_ARGUMENTS = dict(
    quantization_levels=rival_cases.LEVELS,
    server_factor=rival_cases.SERVER_FACTOR,
)


def _check(**changes):
  return rival_cases.check(
      fed_com.build_fed_com, 'fed_com', **_ARGUMENTS, **changes
  )


def test_x_to_1e9_and_bits_exactly_in_float64():
  _check(rounds=8)


def test_xla_and_plain_kernels_agree():
  _check(jit='on')


def test_float32_follows_until_a_draw_rounds_differently(record_property):
  equal = _check(dtype='float32', rounds=8)
  record_property('rounds_until_a_draw_rounds_differently', equal)
  print(f'float32 follows float64 for {equal} of 8 rounds')
  assert equal >= 3


@pytest.mark.parametrize('num_clients', [1, 2, 99, 100, 101])
def test_cohorts(num_clients):
  _check(num_clients=num_clients, rounds=2)


def test_bits_are_those_of_the_encoded_bytes():
  rival_cases.check_encoded_bytes(
      fed_com.build_fed_com, 'fed_com', **_ARGUMENTS
  )


def test_other_codes_change_the_bits_only():
  rival_cases.check_other_code(fed_com.build_fed_com, 'fed_com', **_ARGUMENTS)


def test_levels_and_codes_that_are_refused():
  rival_cases.check_qsgd_refusals(fed_com.build_fed_com)


def test_factor_1_is_fed_paq():
  data = rival_cases.Data()
  points = []
  for process in (
      fed_com.build_fed_com(
          rival_cases.build_model(), quantization_levels=3, server_factor=1.0,
          **rival_cases.ARGUMENTS,
      ),
      fed_paq.build_fed_paq(
          rival_cases.build_model(), quantization_levels=3,
          **rival_cases.ARGUMENTS,
      ),
  ):
    *_, (state, _) = rival_cases.run(rival_cases.compiled(process), data, 3)
    points.append(rival_cases.point_of(state))
  np.testing.assert_array_equal(*points)


def test_factor_is_a_hyperparameter_above_0():
  process = fed_com.build_fed_com(
      rival_cases.build_model(), quantization_levels=3, **rival_cases.ARGUMENTS
  )
  state = process.initialize_with_seed(0)
  assert float(process.get_hparams(state)['server_factor']) == 10.0
  state = process.set_hparams(state, {'server_factor': 0.7})
  assert process.get_hparams(state) == {'step_size': 0.3, 'server_factor': 0.7}
  with pytest.raises(ValueError, match='server_factor must be .* found 0.0'):
    fed_com.build_fed_com(
        rival_cases.build_model(), quantization_levels=3, server_factor=0.0,
        **rival_cases.ARGUMENTS,
    )
