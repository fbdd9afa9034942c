"""A small linear regression, and runs of CEAL on it."""

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_localupdate.ceal import exchange as exchange_lib
from tff_localupdate.ceal import schedule

DIMENSION = 6
BATCH_SIZE = 2
SCHEDULE = dict(
    num_clients=10, noise_scale=0.5, sample_constant=0.3, first_stage=2
)


def build_schedule(**changes):
  return schedule.Schedule(**{**SCHEDULE, **changes})


def build_model(dtype=np.float64):
  """Half the mean squared error of x . w, with w in two tensors."""
  shapes = ([2], [2, 2])

  @tf.function
  def predict(weights, x, training=True):
    del training
    flat = tf.concat([tf.reshape(w, [-1]) for w in weights[0]], axis=0)
    return tf.linalg.matvec(x, flat)

  return tff.learning.models.FunctionalModel(
      initial_weights=(tuple(np.ones(s, dtype) for s in shapes), ()),
      predict_on_batch_fn=predict,
      loss_fn=tf.function(
          lambda output, y, sample_weight=None: 0.5
          * tf.reduce_mean(tf.square(output - y))
      ),
      input_spec=(
          tf.TensorSpec([None, DIMENSION], dtype),
          tf.TensorSpec([None], dtype),
      ),
  )


class Data:
  """Examples, and the draws of each client in each exchange."""

  def __init__(self, num_clients=10, num_examples=40):
    rng = np.random.default_rng(5)
    self.num_clients = num_clients
    self.x = rng.normal(size=[num_examples, DIMENSION]) / np.sqrt(DIMENSION)
    self.y = self.x @ rng.normal(size=DIMENSION) + 0.1 * rng.normal(
        size=num_examples
    )

  def draw(self, exchange, num_samples):
    """Returns (x, y) with leading axes [M, s, B]."""
    rng = np.random.default_rng([17, exchange])
    rows = rng.integers(
        len(self.y), size=[self.num_clients, num_samples, BATCH_SIZE]
    )
    return self.x[rows], self.y[rows]

  def gradient(self, point):
    """Returns the gradient of the objective, over all examples."""
    return self.x.T @ (self.x @ point - self.y) / len(self.y)

  def norm_fn(self, dtype=tf.float64):
    """Returns the norm of the gradient as a function of the weights."""
    x, y = self.x.astype(dtype.as_numpy_dtype), self.y.astype(
        dtype.as_numpy_dtype
    )

    def norm(weights):
      flat = tf.concat([tf.reshape(w, [-1]) for w in weights], axis=0)
      residual = tf.linalg.matvec(x, flat) - y
      return tf.norm(
          tf.linalg.matvec(x, residual, transpose_a=True) / len(self.y)
      )

    return norm

  def cohort(self, exchange, num_samples, rows, dtype=np.float64):
    """Returns the clients' values, their rows filled up with NaN."""
    x, y = self.draw(exchange, num_samples)
    filling = [(0, 0), (0, rows - num_samples), (0, 0)]
    return exchange_lib.ClientQueries(
        batches=(
            np.pad(x, filling + [(0, 0)], constant_values=np.nan).astype(dtype),
            np.pad(y, filling, constant_values=np.nan).astype(dtype),
        ),
        seed=np.arange(self.num_clients),
    )


def point_of(state):
  """Returns x^(k) as one vector."""
  weights = state.model_weights.trainable
  return np.concatenate([np.ravel(leaf) for leaf in weights])


def run(ceal, program, data, state=None, *, dtype=np.float64, exchanges=None):
  """Yields state and metrics after each exchange, up to the horizon."""
  state = program.initialize() if state is None else state
  while not ceal.is_finished(state) and exchanges != 0:
    cohort = data.cohort(
        int(state.exchange),
        ceal.samples_needed(state),
        ceal.rows_needed(state),
        dtype,
    )
    state, metrics = program.next(state, cohort)
    yield state, metrics
    exchanges = exchanges and exchanges - 1
