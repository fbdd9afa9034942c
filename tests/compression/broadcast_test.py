"""The quantized broadcast: one message for all, its bits, stock processes."""

import collections

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.compression import aggregators_test
from tff_localupdate import execution
from tff_localupdate.compression import aggregators
from tff_localupdate.compression import codes
from tff_localupdate.compression import messages
from tff_localupdate.compression import quantizers
from tff_localupdate.compression import random_seeds

GRID = quantizers.GridQuantizer()
CODE = codes.EliasGammaCode()
VALUE_TYPE = aggregators_test.VALUE_TYPE


@pytest.fixture(autouse=True)
def in_process():
  return execution.set_default_context(devices=('/device:CPU:0',))


def test_all_clients_get_the_decoded_message():
  distribution = aggregators.build_quantized_broadcast(
      VALUE_TYPE, GRID, CODE, resolution=0.3, seed=4
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
    sent = messages.transmit(vector, 0.3, seed, GRID, CODE)
    found = np.concatenate([total['a'], total['b'].ravel()])
    np.testing.assert_allclose(found, 11.0 * sent.vector, rtol=1e-6)
    data = messages.encode(GRID.quantize(vector, 0.3, seed), CODE)
    assert len(data) == -(-int(measured.downlink_bits) // 8)
    assert measured.downlink_bits == int(sent.bits) and measured.was_sent
  assert int(state.round_num) == 2


def test_stock_process_with_a_quantized_broadcast():
  model = aggregators_test.build_linear_model()
  weights_type = tff.types.tensorflow_to_type(
      tff.learning.models.ModelWeights((tf.TensorSpec([3], tf.float32),), ())
  )
  learner = tff.learning.algorithms.build_unweighted_fed_avg(
      model,
      client_optimizer_fn=tff.learning.optimizers.build_sgdm(0.1),
      model_distributor=aggregators.build_quantized_broadcast(
          weights_type, GRID, CODE, resolution=0.01
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


def test_wrong_arguments():
  build = aggregators.build_quantized_broadcast
  with pytest.raises(TypeError, match='quantizer must be of type Quantizer'):
    build(VALUE_TYPE, CODE, CODE, resolution=1.0)
  with pytest.raises(TypeError, match='code must be of type Code'):
    build(VALUE_TYPE, GRID, None, resolution=1.0)
  with pytest.raises(ValueError, match='resolution must be .* found -1.0'):
    build(VALUE_TYPE, GRID, codes.SignedUnaryCode(), resolution=-1.0)
  with pytest.raises(ValueError, match='seed must be a whole number'):
    build(VALUE_TYPE, GRID, CODE, resolution=1.0, seed='1')
  with pytest.raises(ValueError, match='value_type must have entries of one'):
    build(tff.TensorType(np.int32, [2]), GRID, CODE, resolution=1.0)
