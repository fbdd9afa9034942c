"""FedPAQ, beyond what `rival_transcriptions_test` checks of all."""

import numpy as np
import pytest
import tensorflow as tf

from baselines.algorithms import fed_paq
from tests.algorithms import rival_cases
from tff_localupdate.compression import random_seeds


@pytest.mark.parametrize(
    'dimension, levels, bits', [(30, 3, 122), (7840, 5, 31392)]
)
def test_11_bits_of_a_message(dimension, levels, bits):
  process = fed_paq.build_fed_paq(
      rival_cases.build_linear_model(np.ones(dimension), 'float32'),
      local_steps=2, batch_size=1, step_size=0.1, quantization_levels=levels,
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
      local_steps=1, batch_size=1, step_size=1.0, quantization_levels=3,
  )
  program = rival_cases.compiled(process)
  state, _ = program.next(
      program.initialize(), rival_cases.linear_cohort(1, 1)
  )
  np.testing.assert_allclose(
      rival_cases.point_of(state), decoded, atol=1e-14
  )
