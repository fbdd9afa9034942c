"""FedPAQ against its transcription, with its bits."""

import numpy as np
import pytest
import tensorflow as tf

from baselines.algorithms import fed_paq
from tests.baselines.algorithms import rival_cases
from tff_localupdate.compression import codes
from tff_localupdate.compression import elias_codes
from tff_localupdate.compression import messages
from tff_localupdate.compression import quantizers
from tff_localupdate.compression import random_seeds

_ARGUMENTS = dict(levels=rival_cases.LEVELS)


def _check(**changes):
  return rival_cases.check(
      fed_paq.build_fed_paq, 'fed_paq', **_ARGUMENTS, **changes
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
  process = fed_paq.build_fed_paq(
      rival_cases.build_model(), **rival_cases.ARGUMENTS, **_ARGUMENTS
  )
  runs = rival_cases.run(rival_cases.compiled(process), data, rounds)
  transcribed = rival_cases.transcribe(
      'fed_paq', data, rounds, uniforms=rival_cases.draws(0)
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
  process = fed_paq.build_fed_paq(
      rival_cases.build_model(), code=code, **rival_cases.ARGUMENTS,
      **_ARGUMENTS,
  )
  runs = rival_cases.run(rival_cases.compiled(process), data, 3)
  transcribed = rival_cases.transcribe(
      'fed_paq', data, 3, uniforms=rival_cases.draws(0)
  )
  for (state, metrics), (x, _, _, integers) in zip(runs, transcribed):
    np.testing.assert_allclose(rival_cases.point_of(state), x, atol=1e-9)
    lengths = [64 + int(code.length(tf.constant(w))) for w in integers]
    assert metrics.total_uplink_bits == sum(lengths)


@pytest.mark.parametrize('levels', [0, -1, 1.5, True, 2**31])
def test_levels_out_of_range(levels):
  with pytest.raises(ValueError, match='(levels|max_index) must be .* found'):
    fed_paq.build_fed_paq(
        rival_cases.build_model(), levels=levels, **rival_cases.ARGUMENTS
    )


def test_code_of_another_type():
  with pytest.raises(TypeError, match='code must be of type Code'):
    fed_paq.build_fed_paq(
        rival_cases.build_model(), levels=3, code=8, **rival_cases.ARGUMENTS
    )


@pytest.mark.parametrize(
    'dimension, levels, bits', [(30, 3, 122), (7840, 5, 31392)]
)
def test_11_bits_of_a_message(dimension, levels, bits):
  process = fed_paq.build_fed_paq(
      rival_cases.build_linear_model(np.ones(dimension), 'float32'),
      num_steps=2, batch_size=1, step_size=0.1, levels=levels,
  )
  program = rival_cases.compiled(process)
  _, metrics = program.next(
      program.initialize(), rival_cases.linear_cohort(10, 2, 'float32')
  )
  assert metrics.uplink_bits == bits
  assert metrics.total_uplink_bits == 10 * bits
  assert metrics.downlink_bits == 32 * dimension


@pytest.mark.parametrize(
    'uniforms, decoded',
    [
        ((0.1, 0.5, 0.9, 0.0), (5 / 3, -10 / 3, 0.0, 0.0)),
        ((0.9, 0.7, 0.9, 0.0), (10 / 3, -5.0, 0.0, 0.0)),
    ],
)
def test_10_decoded_vector_is_the_step(monkeypatch, uniforms, decoded):
  monkeypatch.setattr(
      random_seeds,
      'draw_uniforms',
      lambda shape, seed, dtype: tf.constant(uniforms, dtype),
  )
  process = fed_paq.build_fed_paq(
      rival_cases.build_linear_model([-3.0, 4.0, 0.0, 0.0]),
      num_steps=1, batch_size=1, step_size=1.0, levels=3,
  )
  program = rival_cases.compiled(process)
  state, _ = program.next(
      program.initialize(), rival_cases.linear_cohort(1, 1)
  )
  np.testing.assert_allclose(
      rival_cases.point_of(state), decoded, atol=1e-14
  )
