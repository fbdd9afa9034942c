"""FedCOM against its transcription, with its bits."""

import numpy as np
import pytest
import tensorflow as tf

from baselines.algorithms import fed_com
from baselines.algorithms import fed_paq
from tests.baselines.algorithms import rival_cases
from tff_localupdate.compression import codes
from tff_localupdate.compression import elias_codes
from tff_localupdate.compression import messages
from tff_localupdate.compression import quantizers

_ARGUMENTS = dict(
    levels=rival_cases.LEVELS, server_factor=rival_cases.SERVER_FACTOR
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
  data, rounds = rival_cases.Data(), 4
  process = fed_com.build_fed_com(
      rival_cases.build_model(), **rival_cases.ARGUMENTS, **_ARGUMENTS
  )
  runs = rival_cases.run(rival_cases.compiled(process), data, rounds)
  transcribed = rival_cases.transcribe(
      'fed_com', data, rounds, uniforms=rival_cases.draws(0)
  )
  code = codes.FixedWidthCode(rival_cases.LEVELS)
  for (_, metrics), (_, up, _, integers) in zip(runs, transcribed):
    assert metrics.total_uplink_bits == up
    for whole in integers:
      message = quantizers.QuantizedVector(whole, np.ones(1))
      size = 8 * len(messages.encode(message, code))
      assert 0 <= size - metrics.uplink_bits < 8


def test_other_codes_change_the_bits_only():
  data, code = rival_cases.Data(), elias_codes.EliasGammaCode()
  process = fed_com.build_fed_com(
      rival_cases.build_model(), code=code, **rival_cases.ARGUMENTS,
      **_ARGUMENTS,
  )
  runs = rival_cases.run(rival_cases.compiled(process), data, 3)
  transcribed = rival_cases.transcribe(
      'fed_com', data, 3, uniforms=rival_cases.draws(0)
  )
  for (state, metrics), (x, _, _, integers) in zip(runs, transcribed):
    np.testing.assert_allclose(rival_cases.point_of(state), x, atol=1e-9)
    lengths = [64 + int(code.length(tf.constant(w))) for w in integers]
    assert metrics.total_uplink_bits == sum(lengths)


@pytest.mark.parametrize('levels', [0, -1, 1.5, True, 2**31])
def test_levels_out_of_range(levels):
  with pytest.raises(ValueError, match='(levels|max_index) must be .* found'):
    fed_com.build_fed_com(
        rival_cases.build_model(), levels=levels, **rival_cases.ARGUMENTS
    )


def test_code_of_another_type():
  with pytest.raises(TypeError, match='code must be of type Code'):
    fed_com.build_fed_com(
        rival_cases.build_model(), levels=3, code=8, **rival_cases.ARGUMENTS
    )


def test_factor_1_is_fed_paq():
  data = rival_cases.Data()
  points = []
  for process in (
      fed_com.build_fed_com(
          rival_cases.build_model(), levels=3, server_factor=1.0,
          **rival_cases.ARGUMENTS,
      ),
      fed_paq.build_fed_paq(
          rival_cases.build_model(), levels=3, **rival_cases.ARGUMENTS
      ),
  ):
    *_, (state, _) = rival_cases.run(rival_cases.compiled(process), data, 3)
    points.append(rival_cases.point_of(state))
  np.testing.assert_array_equal(*points)


def test_factor_is_a_hyperparameter_above_0():
  process = fed_com.build_fed_com(
      rival_cases.build_model(), levels=3, **rival_cases.ARGUMENTS
  )
  state = process.initialize_with_seed(0)
  assert float(process.get_hparams(state)['server_factor']) == 10.0
  state = process.set_hparams(state, {'server_factor': 0.7})
  assert process.get_hparams(state) == {'step_size': 0.3, 'server_factor': 0.7}
  with pytest.raises(ValueError, match='server_factor must be .* found 0.0'):
    fed_com.build_fed_com(
        rival_cases.build_model(), levels=3, server_factor=0.0,
        **rival_cases.ARGUMENTS,
    )
