"""Quantized mean and quantized broadcast: bits, draws, stock processes."""

import collections
import inspect
import textwrap

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_localupdate import execution
from tff_localupdate import server_optimizers
from tff_localupdate import theta
from tff_localupdate.compression import aggregators
from tff_localupdate.compression import codes
from tff_localupdate.compression import messages
from tff_localupdate.compression import quantizers
from tff_localupdate.compression import random_seeds
from tff_localupdate.local_update import client_work
from tff_localupdate.local_update import process

VALUE_TYPE = tff.to_type(
    collections.OrderedDict(
        a=tff.TensorType(np.float32, [5]), b=tff.TensorType(np.float32, [2, 2])
    )
)
GRID = quantizers.GridQuantizer()
UNARY = codes.SignedUnaryCode()
GAMMA = codes.EliasGammaCode()


@pytest.fixture(autouse=True)
def in_process():
  return execution.set_default_context(devices=('/device:CPU:0',))


def build_iterative(aggregation):
  """An aggregation as an iterative process, which contexts can run."""

  @tff.federated_computation(
      aggregation.next.type_signature.parameter[0],
      aggregation.next.type_signature.parameter[1],
  )
  def next_fn(state, value):
    output = aggregation.next(state, value)
    return output.state, tff.federated_zip((output.result, output.measurements))

  return tff.templates.IterativeProcess(aggregation.initialize, next_fn)


@pytest.fixture(scope='module')
def grid_program():
  factory = aggregators.QuantizedMeanFactory(GRID, UNARY, resolution=0.5)
  aggregation = factory.create(VALUE_TYPE)
  return execution.compile_process(
      build_iterative(aggregation), devices=('/device:CPU:0',), jit='off'
  )


def make_cohort(size, seed=0, spread=1.0):
  rng = np.random.default_rng(seed)
  base = np.random.default_rng(99).normal(size=9)
  values = (base + spread * rng.normal(size=[size, 9])).astype(np.float32)
  return values, collections.OrderedDict(
      a=values[:, :5], b=values[:, 5:].reshape([size, 2, 2])
  )


def flat(result):
  return np.concatenate([result['a'], result['b'].ravel()])


@pytest.mark.parametrize('size', [1, 2, 99, 100, 101])
def test_mean_and_bits_of_any_cohort(grid_program, size):
  values, cohort = make_cohort(size)
  state = grid_program.initialize()
  new_state, (result, measured) = grid_program.next(state, cohort)
  total, bits = 0.0, 0
  round_seed = random_seeds.derive_seed(0, 0)
  for value in tf.constant(values):
    seed = random_seeds.derive_seed(
        0, 0, random_seeds.digest(value, round_seed)
    )
    quantized = GRID.quantize(value, 0.5, seed)
    data = messages.encode(quantized, UNARY)
    # The bytes alone give the server what it adds.
    found = UNARY.decode(data, 9)
    total += found * np.float64(np.float32(0.5) / np.float32(3.0))
    bits += int(UNARY.length(quantized.indices))
  np.testing.assert_allclose(flat(result), total / size, atol=2e-6)
  assert measured.total_uplink_bits == bits
  assert measured.total_uplink_bits.dtype == np.int64
  assert measured.uplink_bits == bits / size
  assert measured.clients_not_sent == 0
  assert int(new_state.round_num) == 1


def test_variance_of_the_mean_falls_as_1_over_clients(grid_program):
  variances = {}
  for size in (4, 64):
    # Values that differ in little but their last bits.
    values, cohort = make_cohort(size, spread=1e-4)
    state, errors = grid_program.initialize(), []
    for _ in range(400):
      state, (result, _) = grid_program.next(state, cohort)
      errors.append(flat(result) - values.mean(axis=0))
    variances[size] = np.mean(np.square(errors))
    assert np.abs(np.mean(errors, axis=0)).max() < 0.02
  assert variances[4] / variances[64] == pytest.approx(16.0, rel=0.12)


def test_equal_values_round_alike_and_rounds_differ(grid_program):
  value = np.tile(make_cohort(1)[0], [5, 1])
  cohort = collections.OrderedDict(
      a=value[:, :5], b=value[:, 5:].reshape([5, 2, 2])
  )
  state, results = grid_program.initialize(), []
  for _ in range(2):
    state, (result, _) = grid_program.next(state, cohort)
    results.append(flat(result))
  steps = results[0] / (0.5 / 3.0)
  np.testing.assert_allclose(steps, np.round(steps), atol=1e-4)
  assert not np.array_equal(*results)


def test_value_that_is_not_finite_is_counted_and_seen(grid_program):
  _, cohort = make_cohort(3)
  cohort['a'][1, 2] = np.nan
  _, (result, measured) = grid_program.next(grid_program.initialize(), cohort)
  assert measured.clients_not_sent == 1
  assert np.all(np.isnan(flat(result)))


def test_identity_of_the_docs_reproduces_the_plain_mean():
  text = inspect.getdoc(quantizers.Quantizer)
  scope = {'quantizers': quantizers, 'tf': tf}
  exec(textwrap.dedent(text[text.index('    class Identity') :]), scope)
  identity = scope['IdentityQuantizer']()
  factories = {
      'identity': aggregators.QuantizedMeanFactory(
          identity, UNARY, resolution=1.0
      ),
      'plain': tff.aggregators.UnweightedMeanFactory(),
  }
  _, cohort = make_cohort(7)
  results = {}
  for name, factory in factories.items():
    program = execution.compile_process(
        build_iterative(factory.create(VALUE_TYPE)),
        devices=('/device:CPU:0',), jit='off',
    )
    _, (result, measured) = program.next(program.initialize(), cohort)
    results[name] = flat(result)
    if name == 'identity':
      assert measured.uplink_bits == 32 * 9
  np.testing.assert_array_equal(results['identity'], results['plain'])


def build_linear_model(dtype=np.float32):
  return tff.learning.models.FunctionalModel(
      initial_weights=((np.zeros([3], dtype),), ()),
      predict_on_batch_fn=tf.function(
          lambda weights, x, training=True: tf.linalg.matvec(x, weights[0][0])
      ),
      loss_fn=tf.function(
          lambda output, y, sample_weight=None: tf.reduce_mean(
              tf.square(output - tf.reshape(y, [-1]))
          )
      ),
      input_spec=(
          tf.TensorSpec([None, 3], dtype), tf.TensorSpec([None, 1], dtype)
      ),
  )


@pytest.mark.parametrize('dtype', [np.float32, np.float64])
def test_local_update_with_a_quantized_aggregator(dtype):
  learner = process.build_local_update(
      build_linear_model(dtype),
      theta=theta.Theta.ones(2),
      batch_size=4,
      client_learning_rate=0.1,
      server_optimizer=server_optimizers.build_sgd(0.1),
      aggregator=aggregators.QuantizedMeanFactory(
          quantizers.QsgdQuantizer(), codes.FixedWidthCode(7), resolution=7
      ),
  )
  program = execution.compile_process(learner, devices=('/device:CPU:0',))
  rng, state = np.random.default_rng(0), program.initialize()
  losses = []
  for _ in range(30):
    x = rng.normal(size=[5, 2, 4, 3]).astype(dtype)
    y = x.sum(axis=-1, keepdims=True)
    state, metrics = program.next(
        state, client_work.ClientBatches((x, y), np.full([5], 8, np.int32))
    )
    losses.append(float(metrics.loss_before_training))
  width = 8 * np.dtype(dtype).itemsize
  assert metrics.aggregator.uplink_bits == width + 3 * 4
  assert metrics.aggregator.total_uplink_bits == 5 * (width + 3 * 4)
  assert losses[-1] < 0.05 * losses[0]


def test_stock_process_with_a_quantized_aggregator():
  learner = tff.learning.algorithms.build_unweighted_fed_avg(
      build_linear_model(),
      client_optimizer_fn=tff.learning.optimizers.build_sgdm(0.1),
      model_aggregator=aggregators.QuantizedMeanFactory(
          GRID, UNARY, resolution=0.01
      ),
  )
  x = np.random.default_rng(0).normal(size=[6, 3]).astype(np.float32)
  data = tf.data.Dataset.from_tensor_slices((x, x.sum(1, keepdims=True)))
  output = learner.next(learner.initialize(), [data.batch(2), data.batch(3)])
  measured = output.metrics['aggregator']
  assert measured.total_uplink_bits > 0 and measured.clients_not_sent == 0


def test_wrong_arguments():
  build = aggregators.QuantizedMeanFactory
  with pytest.raises(TypeError, match='quantizer must be of type Quantizer'):
    build(UNARY, UNARY, resolution=1.0)
  with pytest.raises(TypeError, match='code must be of type Code'):
    build(GRID, GRID, resolution=1.0)
  with pytest.raises(ValueError, match='resolution must be .* found 0'):
    build(quantizers.QsgdQuantizer(), UNARY, resolution=0)
  with pytest.raises(ValueError, match='seed must be a whole number'):
    build(GRID, UNARY, resolution=1.0, seed=0.5)
  with pytest.raises(ValueError, match='value_type must have entries of one'):
    build(GRID, UNARY, resolution=1.0).create(tff.TensorType(np.int32, [2]))


def test_all_clients_get_the_decoded_message():
  distribution = aggregators.build_quantized_broadcast(
      VALUE_TYPE, GRID, GAMMA, resolution=0.3, seed=4
  )
  value = collections.OrderedDict(
      a=np.linspace(-1, 1, 5, dtype=np.float32),
      b=np.array([[0.0, 3.0], [0.1, -0.1]], np.float32),
  )
  weight = tff.TensorType(np.float32)
  state_type = distribution.initialize.type_signature.result

  @tff.tensorflow.computation(VALUE_TYPE, weight)
  def scaled(received, factor):
    return tf.nest.map_structure(lambda leaf: factor * leaf, received)

  @tff.tensorflow.computation
  def constant():
    return tf.nest.map_structure(tf.constant, value)

  @tff.federated_computation(state_type, tff.FederatedType(weight, tff.CLIENTS))
  def next_fn(state, factors):
    output = distribution.next(state, tff.federated_eval(constant, tff.SERVER))
    total = tff.federated_sum(
        tff.federated_map(scaled, (output.result, factors))
    )
    return output.state, tff.federated_zip((total, output.measurements))

  vector = tf.constant(np.concatenate([value['a'], value['b'].ravel()]))
  state = distribution.initialize()
  for round_num in range(2):
    state, (total, measured) = next_fn(
        state, [np.float32(1.0), np.float32(10.0)]
    )
    seed = random_seeds.derive_seed(4, round_num)
    sent = messages.transmit(vector, 0.3, seed, GRID, GAMMA)
    found = np.concatenate([total['a'], total['b'].ravel()])
    np.testing.assert_allclose(found, 11.0 * sent.vector, rtol=1e-6)
    data = messages.encode(GRID.quantize(vector, 0.3, seed), GAMMA)
    assert len(data) == -(-int(measured.downlink_bits) // 8)
    assert measured.downlink_bits == int(sent.bits) and measured.was_sent
  assert int(state.round_num) == 2


def test_stock_process_with_a_quantized_broadcast():
  model = build_linear_model()
  weights_type = tff.types.tensorflow_to_type(
      tff.learning.models.ModelWeights((tf.TensorSpec([3], tf.float32),), ())
  )
  learner = tff.learning.algorithms.build_unweighted_fed_avg(
      model,
      client_optimizer_fn=tff.learning.optimizers.build_sgdm(0.1),
      model_distributor=aggregators.build_quantized_broadcast(
          weights_type, GRID, GAMMA, resolution=0.01
      ),
  )
  x = np.random.default_rng(0).normal(size=[6, 3]).astype(np.float32)
  data = tf.data.Dataset.from_tensor_slices((x, x.sum(1, keepdims=True)))
  state = learner.initialize()
  bits = []
  for _ in range(2):
    output = learner.next(state, [data.batch(2)])
    state = output.state
    bits.append(int(output.metrics['distributor'].downlink_bits))
  # The weights are 0 at first, a bit for each, and then no more.
  assert bits[0] == 3 and bits[1] > 3


def test_wrong_arguments_of_the_broadcast():
  build = aggregators.build_quantized_broadcast
  with pytest.raises(TypeError, match='quantizer must be of type Quantizer'):
    build(VALUE_TYPE, GAMMA, GAMMA, resolution=1.0)
  with pytest.raises(TypeError, match='code must be of type Code'):
    build(VALUE_TYPE, GRID, None, resolution=1.0)
  with pytest.raises(ValueError, match='resolution must be .* found -1.0'):
    build(VALUE_TYPE, GRID, codes.SignedUnaryCode(), resolution=-1.0)
  with pytest.raises(ValueError, match='seed must be a whole number'):
    build(VALUE_TYPE, GRID, GAMMA, resolution=1.0, seed='1')
  with pytest.raises(ValueError, match='value_type must have entries of one'):
    build(tff.TensorType(np.int32, [2]), GRID, GAMMA, resolution=1.0)
