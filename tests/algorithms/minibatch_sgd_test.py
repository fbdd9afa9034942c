"""Minibatch-SGD, beyond what `rival_transcriptions_test` checks of all."""

import pytest

from baselines.algorithms import minibatch_sgd
from tests.algorithms import rival_cases


def test_11_bits_of_a_float_message():
  process = minibatch_sgd.build_minibatch_sgd(
      rival_cases.build_linear_model([1.0] * 30, 'float32'),
      local_steps=2, batch_size=1, step_size=0.1,
  )
  program = rival_cases.compiled(process)
  _, metrics = program.next(
      program.initialize(), rival_cases.linear_cohort(10, 2, 'float32')
  )
  assert metrics.uplink_bits == metrics.downlink_bits == 960


def test_loss_before_training_is_that_of_all_queries():
  data = rival_cases.Data()
  process = minibatch_sgd.build_minibatch_sgd(
      rival_cases.build_model(), **rival_cases.ARGUMENTS
  )
  (_, metrics), = rival_cases.run(rival_cases.compiled(process), data, 1)
  x, y = data.draw(0)
  losses = 0.5 * (x.sum(-1) * rival_cases.START - y) ** 2
  assert metrics.loss_before_training == pytest.approx(losses.mean(), rel=1e-12)
  assert metrics.client_learning_rate == 0.0
  assert metrics.server_learning_rate == rival_cases.STEP_SIZE
