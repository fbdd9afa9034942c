"""Spec 2(a): stock FedAvg is LocalUpdate with Theta_{1:K} and eta = r gamma.

G20: two logistic clients, Theta_{1:3}, gamma = 0.5, eta = 0.3, two rounds. The
model-delta form of tff.learning reaches it with server rate r = eta / gamma =
0.6 if clients have equal weights, and must not if they are weighted by their
numbers of examples.
"""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_localupdate import execution
from tff_localupdate import server_optimizers
from tff_localupdate import theta as theta_lib
from tff_localupdate.local_update import client_work
from tff_localupdate.local_update import process as process_lib

X = (
    np.array([[1, 0], [0, 1], [1, 1]], np.float32),
    np.array([[2, -1], [-1, 1]], np.float32),
)
Y = (np.array([1, 0, 1], np.float32), np.array([0, 1], np.float32))
START = np.array([[0.1], [-0.2]], np.float32)
G20 = [-0.1047678975, 0.1309666997]
WEIGHTED = [0.0293986, 0.0726918]
STEPS = 3


def _logistic():
  @tf.function
  def predict(weights, x, training=True):
    del training
    return tf.matmul(x, weights[0][0])[:, 0]

  @tf.function
  def loss(output, label, sample_weight=None):
    del sample_weight
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(
        labels=label, logits=output))

  return tff.learning.models.FunctionalModel(
      initial_weights=((START,), ()), predict_on_batch_fn=predict,
      loss_fn=loss, input_spec=(
          tf.TensorSpec([None, 2], tf.float32),
          tf.TensorSpec([None], tf.float32)),
  )


@pytest.fixture(autouse=True)
def in_process():
  execution.set_default_context()


def _stock(build):
  optimizer = tff.learning.optimizers.build_sgdm
  process = build(_logistic(), optimizer(0.5), optimizer(0.6))
  clients = [
      tf.data.Dataset.from_tensor_slices((x, y)).batch(len(x)).repeat(STEPS)
      for x, y in zip(X, Y)
  ]
  state = process.initialize()
  for _ in range(2):
    state = process.next(state, clients).state
  return np.ravel(process.get_model_weights(state).trainable[0])


def _local_update():
  """Theta_{1:3} on K full batches, eta = 0.3."""
  process = process_lib.build_local_update(
      _logistic(), theta=theta_lib.Theta.ones(STEPS), batch_size=6,
      client_learning_rate=0.5, server_optimizer=server_optimizers.build_sgd(
          0.3))

  def full_batches(x, y):
    # Six draws that hold each of two or three examples equally often.
    repeat = 6 // len(x)
    return client_work.ClientBatches(
        (np.stack([np.tile(x, (repeat, 1))] * STEPS),
         np.stack([np.tile(y, repeat)] * STEPS)), np.int32(len(x)))

  clients = [full_batches(x, y) for x, y in zip(X, Y)]
  state = process.initialize()
  for _ in range(2):
    state, _ = process.next(state, clients)
  return np.ravel(process.get_model_weights(state).trainable[0])


def test_g20_stock_unweighted_fed_avg_equals_local_update():
  stock = _stock(tff.learning.algorithms.build_unweighted_fed_avg)
  np.testing.assert_allclose(stock, G20, atol=1e-6)
  np.testing.assert_allclose(_local_update(), stock, atol=1e-6)


def test_negative_control_weighted_fed_avg_is_another_algorithm():
  weighted = _stock(tff.learning.algorithms.build_weighted_fed_avg)
  np.testing.assert_allclose(weighted, WEIGHTED, atol=1e-6)
  assert np.max(np.abs(weighted - G20)) > 0.1
