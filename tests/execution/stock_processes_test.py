"""Stock tff.learning processes: in-process results equal TFF's own context."""

import collections
import functools
import os
import signal

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.execution import processes
from tff_localupdate import execution

NUM_CLIENTS = 4
SPEC = (
    tf.TensorSpec([None, 3], tf.float32),
    tf.TensorSpec([None, 1], tf.float32),
)


def _keras():
  initial = tf.keras.initializers.Constant([[0.3], [-0.2], [0.1]])
  return tf.keras.Sequential([
      tf.keras.layers.Dense(1, input_shape=(3,), kernel_initializer=initial)
  ])


def _functional():
  return tff.learning.models.functional_model_from_keras(
      _keras(), tf.keras.losses.MeanSquaredError(), SPEC,
      metrics_constructor=lambda: collections.OrderedDict(
          mse=tf.keras.metrics.MeanSquaredError()),
  )


def _with_variables():
  return tff.learning.models.from_keras_model(
      _keras(), loss=tf.keras.losses.MeanSquaredError(), input_spec=SPEC,
      metrics=[tf.keras.metrics.MeanSquaredError()],
  )


@pytest.fixture(scope='module')
def clients():
  rng = np.random.default_rng(0)
  data = []
  for i in range(NUM_CLIENTS):
    x = rng.normal(size=(3 + 2 * i, 3)).astype('float32')
    y = (x @ [[1.0], [2.0], [-1.0]] + 0.1 * i).astype('float32')
    data.append(tf.data.Dataset.from_tensor_slices((x, y)).batch(2))
  return data


def _child_processes():
  return {
      int(pid) for task in os.listdir('/proc/self/task')
      for pid in open(f'/proc/self/task/{task}/children').read().split()
  }


@pytest.fixture(scope='module')
def native():
  """TFF's own runtime, with the sums that secure aggregation needs."""
  before = _child_processes()
  tff.backends.test.set_sync_test_cpp_execution_context()
  context = tff.framework.get_context_stack().current
  yield context
  # TFF's worker outlives its parent; the test must not leave it behind.
  for pid in _child_processes() - before:
    os.kill(pid, signal.SIGKILL)


def _two_rounds(context, process, clients):
  tff.framework.set_default_context(context)
  state, metrics = process.initialize(), []
  for _ in range(2):
    output = process.next(state, clients)
    state = output.state
    metrics.append(output.metrics)
  return tf.nest.flatten(state), tf.nest.flatten(metrics)


@functools.cache
def _ours():
  """One context for all: compiling a stock process takes seconds."""
  return execution.InProcessContext()


def _assert_equal(process, clients, native, tolerance=1e-6):
  ours = _two_rounds(_ours(), process, clients)
  theirs = _two_rounds(native, process, clients)
  for mine, other in zip(ours, theirs):
    assert len(mine) == len(other) > 0
    for a, b in zip(mine, other):
      a, b = np.asarray(a), np.asarray(b)
      if a.dtype == object:
        assert a == b
      else:
        np.testing.assert_allclose(a, b, tolerance, tolerance)


SGD = tff.learning.optimizers.build_sgdm
ALGORITHMS = tff.learning.algorithms
PROCESSES = {
    'fed_avg_unweighted': lambda: ALGORITHMS.build_unweighted_fed_avg(
        _functional(), SGD(0.1), SGD(1.0)),
    'fed_avg_unweighted_variables': lambda: ALGORITHMS.build_unweighted_fed_avg(
        _with_variables, SGD(0.1), SGD(1.0)),
    'fed_avg_weighted_yogi': lambda: ALGORITHMS.build_weighted_fed_avg(
        _functional(), SGD(0.1), tff.learning.optimizers.build_yogi(
            0.1, beta_2=0.99, epsilon=1e-5,
            initial_preconditioner_value=0.0)),
    'fed_prox': lambda: ALGORITHMS.build_weighted_fed_prox(
        _functional(), 0.5, SGD(0.1), SGD(1.0)),
    'mime_lite': lambda: ALGORITHMS.build_weighted_mime_lite(
        _functional(), SGD(0.1, 0.9), SGD(1.0)),
    'fed_sgd': lambda: ALGORITHMS.build_fed_sgd(_functional(), SGD(0.1)),
    'fed_eval': lambda: ALGORITHMS.build_fed_eval(_with_variables),
    'robust': lambda: ALGORITHMS.build_weighted_fed_avg(
        _functional(), SGD(0.1), SGD(1.0),
        model_aggregator=tff.learning.robust_aggregator()),
    'clipping': lambda: ALGORITHMS.build_unweighted_fed_avg(
        _functional(), SGD(0.1), SGD(1.0),
        model_aggregator=tff.aggregators.clipping_factory(
            0.2, tff.aggregators.UnweightedMeanFactory())),
    'secure': lambda: ALGORITHMS.build_unweighted_fed_avg(
        _with_variables, SGD(0.1), SGD(1.0),
        model_aggregator=tff.learning.secure_aggregator(weighted=False),
        metrics_aggregator=tff.learning.metrics.secure_sum_then_finalize),
    'secure_functional': lambda: _fed_avg(
        tff.learning.secure_aggregator(weighted=False)),
    'compression': lambda: _fed_avg(
        tff.learning.compression_aggregator(weighted=False)),
}


@functools.cache
def _process(name):
  return PROCESSES[name]()


@pytest.mark.parametrize('name', PROCESSES)
def test_stock_process_equals_tff_context(name, clients, native):
  _assert_equal(_process(name), clients, native)


def _fed_avg(aggregator):
  return ALGORITHMS.build_unweighted_fed_avg(
      _functional(), SGD(0.1), SGD(1.0), model_aggregator=aggregator
  )


def test_hand_written_process_equals_tff_context(native):
  process = processes.build_process(
      (np.float32, [2]), lambda value: tf.reduce_sum(value ** 2)
  )
  values = [np.array([0.1 * i, -0.3], np.float32) for i in range(5)]
  results = []
  for context in (execution.InProcessContext(), native):
    tff.framework.set_default_context(context)
    state, total = process.next(process.initialize(), values)
    results.append((float(state.total), int(state.rounds), float(total)))
  np.testing.assert_allclose(*results, rtol=1e-6)


@functools.cache
def _private(noise_multiplier):
  return _fed_avg(
      tff.aggregators.DifferentiallyPrivateFactory.gaussian_fixed(
          noise_multiplier, NUM_CLIENTS, clip=0.5
      )
  )


def _weights(process, clients):
  """The model's weights after a round of ours, in one vector."""
  tff.framework.set_default_context(_ours())
  state = process.next(process.initialize(), clients).state
  return np.concatenate([
      np.ravel(w) for w in process.get_model_weights(state).trainable
  ])


def test_noiseless_differential_privacy_equals_tff_context(clients, native):
  _assert_equal(_private(0.0), clients, native)


def test_differential_privacy_adds_noise_of_the_stated_scale(clients):
  noise = np.abs(
      _weights(_private(1e-3), clients) - _weights(_private(0.0), clients)
  )
  # Noise per coordinate has standard deviation 1e-3 * 0.5 / 4.
  assert 0 < noise.max() < 6 * 1e-3 * 0.5 / NUM_CLIENTS


def test_quantized_sum_stays_within_its_step_of_the_plain_mean(clients):
  quantized_sum = tff.aggregators.EncodedSumFactory.quantize_above_threshold(
      quantization_bits=8, threshold=1
  )
  quantized = _fed_avg(tff.aggregators.UnweightedMeanFactory(
      value_sum_factory=quantized_sum))
  difference = np.abs(
      _weights(_process('fed_avg_unweighted'), clients)
      - _weights(quantized, clients)
  )
  # A client's update is rounded within its own range, at most 2 here, to 255
  # steps.
  assert 0 < difference.max() <= 2 / 255


def test_summation_is_repeatable_bit_for_bit(clients):
  many = clients * 13
  process = _process('fed_avg_weighted_yogi')
  # In a context twice, and in one that compiles it again.
  runs = [
      _two_rounds(context, process, many)[0]
      for context in (_ours(), _ours(), execution.InProcessContext())
  ]
  for run in runs[1:]:
    for a, b in zip(runs[0], run):
      assert np.array_equal(np.asarray(a), np.asarray(b))


def test_diverged_client_is_not_hidden_by_our_context(clients, native):
  """TFF's default finalizer rejects the update; the report must equal TFF's."""
  process = ALGORITHMS.build_weighted_fed_avg(
      _functional(), SGD(1e30), SGD(1.0))
  _assert_equal(process, clients, native)
