"""The rounds that the benchmarks time, on random data of the papers' shapes."""

from collections.abc import Callable
import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_localupdate import server_optimizers
from tff_localupdate import theta as theta_lib
from tff_localupdate.local_update import client_work
from tff_localupdate.local_update import process as process_lib


@dataclasses.dataclass(frozen=True)
class Workload:
  """One kind of round.

  Attributes:
    name: What the tables call it.
    clients: M.
    steps: K.
    batch_size: B.
    client_learning_rate: gamma.
    server_learning_rate: eta.
    input_shape: Shape of an example.
    label_shape: Shape of its label.
    classes: Number of classes; 0 for real labels.
    weights: Starting weights.
    predict: Maps (weights, inputs) to outputs.
    loss: Maps (outputs, labels) to the mean loss of a batch.
  """

  name: str
  clients: int
  steps: int
  batch_size: int
  client_learning_rate: float
  server_learning_rate: float
  input_shape: tuple[int, ...]
  label_shape: tuple[int, ...]
  classes: int
  weights: tuple[np.ndarray, ...]
  predict: Callable[[Any, Any], tf.Tensor]
  loss: Callable[[Any, Any], tf.Tensor]

  def process(self, loss_before_training: str) -> Any:
    """LocalUpdate on this workload."""
    label_dtype = tf.int32 if self.classes else tf.float32

    @tf.function
    def predict(weights, x, training=True):
      del training
      return self.predict(weights[0], x)

    @tf.function
    def loss(output, label, sample_weight=None):
      del sample_weight
      return self.loss(output, label)

    model = tff.learning.models.FunctionalModel(
        initial_weights=(self.weights, ()),
        predict_on_batch_fn=predict,
        loss_fn=loss,
        input_spec=(
            tf.TensorSpec((None,) + self.input_shape, tf.float32),
            tf.TensorSpec((None,) + self.label_shape, label_dtype),
        ),
    )
    return process_lib.build_local_update(
        model,
        theta=theta_lib.Theta.ones(self.steps),
        batch_size=self.batch_size,
        client_learning_rate=self.client_learning_rate,
        server_optimizer=server_optimizers.build_sgd(
            self.server_learning_rate),
        loss_before_training=loss_before_training,
    )

  def cohort(self, clients: int = 0) -> client_work.ClientBatches:
    """Random data of a cohort, leaves [M, K, B, ...]."""
    rng = np.random.default_rng(1)
    shape = (clients or self.clients, self.steps, self.batch_size)
    x = rng.standard_normal(shape + self.input_shape, dtype=np.float32)
    labels = shape + self.label_shape
    y = (
        rng.integers(0, self.classes, labels, dtype=np.int32)
        if self.classes else rng.standard_normal(labels, dtype=np.float32)
    )
    counts = np.full(shape[0], 100, np.int32)
    return client_work.ClientBatches((x, y), counts)


def linear() -> Workload:
  """Least squares in 30 dimensions: nothing but overheads to time."""
  return Workload(
      'linear (d 30, M 10, K 50, B 1)', 10, 50, 1, 0.01, 0.01, (30,), (1,), 0,
      (np.zeros((30, 1), np.float32), np.zeros(1, np.float32)),
      lambda w, x: tf.matmul(x, w[0]) + w[1],
      lambda output, label: tf.reduce_mean((output - label) ** 2),
  )


def femnist() -> Workload:
  """TFF's `cnn` for 62 classes, 1,690,046 weights.

  Rates are small, so that rounding does not grow over the rounds and programs
  that add in another order can be compared to 1e-5.
  """
  shapes = ((5, 5, 1, 32), (32,), (5, 5, 32, 64), (64,), (3136, 512), (512,),
            (512, 62), (62,))
  rng = np.random.default_rng(0)
  weights = tuple(
      (rng.standard_normal(s) / np.sqrt(np.prod(s[:-1]))).astype(np.float32)
      for s in shapes
  )

  def predict(w, x):
    for kernel, bias in ((w[0], w[1]), (w[2], w[3])):
      x = tf.nn.relu(tf.nn.conv2d(x, kernel, 1, 'SAME') + bias)
      x = tf.nn.max_pool2d(x, 2, 2, 'SAME')
    x = tf.reshape(x, [-1, 3136])
    return tf.matmul(tf.nn.relu(tf.matmul(x, w[4]) + w[5]), w[6]) + w[7]

  def loss(output, label):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=label, logits=output))

  return Workload('femnist (cnn, M 10, K 10, B 20)', 10, 10, 20, 1e-4, 1e-4,
                  (28, 28, 1), (), 62, weights, predict, loss)


WORKLOADS = {'linear': linear, 'femnist': femnist}
