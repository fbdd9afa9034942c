"""Rounds on GPUs: where they run, and that they compute what a CPU does.

  scripts/test.sh tests/gpu

Skipped where TensorFlow sees no GPU; the other tests hide GPUs.
"""

import numpy as np
import pytest
import tensorflow as tf

from baselines.tasks import digits
from baselines.tasks import shakespeare
from baselines.tasks import stackoverflow_tag
from tff_localupdate import execution
from tff_localupdate import server_optimizers
from tff_localupdate import theta
from tff_localupdate.local_update import client_work
from tff_localupdate.local_update import process as process_lib

_GPUS = tf.config.list_physical_devices('GPU')
pytestmark = pytest.mark.skipif(not _GPUS, reason='TensorFlow sees no GPU')

_CLIENTS, _STEPS, _BATCH, _LENGTH = 4, 3, 2, 8


def _characters(rng):
  tokens = rng.integers(0, 90, [_CLIENTS, _STEPS, _BATCH, _LENGTH + 1])
  return (shakespeare.build_lstm(1, 'float32', _LENGTH),
          (tokens[..., :-1], tokens[..., 1:]))


def _images(rng):
  shape = [_CLIENTS, _STEPS, _BATCH]
  return (digits.build_cnn(1, 'float32'),
          (rng.random([*shape, 8, 8, 1], np.float32),
           rng.integers(0, 10, shape, np.int32)))


def _words(rng):
  shape = [_CLIENTS, _STEPS, _BATCH]
  words = np.zeros([*shape, stackoverflow_tag.MAX_WORDS, 2], np.int16)
  words[..., :5, 0] = rng.integers(0, 50, [*shape, 5])
  words[..., :5, 1] = 1
  return (stackoverflow_tag.build_logistic(50, 7, False, 1, 'float32'),
          (words, rng.integers(0, 2, [*shape, 7]).astype(np.uint8)))


def _weights_after(case, devices, rounds=3):
  """Weights after some rounds, where they lie, and where clients worked."""
  model, batches = case(np.random.default_rng(0))
  process = process_lib.build_local_update(
      model,
      theta=theta.Theta.ones(_STEPS),
      batch_size=_BATCH,
      client_learning_rate=0.05,
      server_optimizer=server_optimizers.build_sgd(0.05),
  )
  program = execution.compile_process(process, devices=devices)
  state = program.initialize()
  cohort = client_work.ClientBatches(
      batches, np.full(_CLIENTS, 9, np.int32)
  )
  for _ in range(rounds):
    state, _ = program.next(state, cohort)
  leaves = tf.nest.flatten(state.model_weights.trainable)
  return [x.numpy() for x in leaves], leaves[0].device, program.device_report


@pytest.mark.parametrize('case', [_characters, _images, _words])
def test_a_gpu_computes_what_a_cpu_does(case):
  gpu = execution.configure(
      'GPU:0', require_gpu=True, deterministic=True, tensor_float_32=False
  )
  found, device, report = _weights_after(case, gpu)
  assert 'GPU' in device and 'GPU:0' in report
  expected, _, _ = _weights_after(case, execution.configure('CPU:0'))
  for a, b in zip(found, expected):
    np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-4)
  again, _, _ = _weights_after(case, gpu)
  assert all(map(np.array_equal, found, again))


@pytest.mark.skipif(len(_GPUS) < 2, reason='needs two GPUs')
def test_two_gpus_share_a_cohort():
  both = execution.configure('GPU:0,GPU:1', require_gpu=True)
  found, _, report = _weights_after(_images, both)
  assert 'GPU:0' in report and 'GPU:1' in report
  expected, _, _ = _weights_after(_images, both[:1])
  for a, b in zip(found, expected):
    np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-4)
