"""The four rivals of CEAL in NumPy, as listed, and a problem to run them on."""

import types

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from baselines.algorithms import driver as driver_lib
from baselines.algorithms import local_update
from baselines.settings import algorithms
from tff_localupdate import execution
from tff_localupdate.compression import random_seeds

CPU = ('/device:CPU:0',)
DIMENSION = 6
NUM_STEPS = 4
BATCH_SIZE = 2
STEP_SIZE = 0.3
LEVELS = 3
SERVER_FACTOR = 2.5
START = 0.5
SETTINGS = dict(local_steps=NUM_STEPS, step_size=STEP_SIZE)
MEMBERS = {
    'minibatch_sgd': algorithms.MinibatchSgdConfig(**SETTINGS),
    'fed_avg': algorithms.FedAvgConfig(**SETTINGS),
    'fed_paq': algorithms.FedPaqConfig(**SETTINGS, quantization_levels=LEVELS),
    'fed_com': algorithms.FedComConfig(
        **SETTINGS, quantization_levels=LEVELS, server_factor=SERVER_FACTOR
    ),
}


def build(settings, model=None, dtype='float64', batch_size=BATCH_SIZE):
  """Returns the driver of a member of LocalUpdate, of the problem's model."""
  run_settings = types.SimpleNamespace(batch_size=batch_size, dtype=dtype)
  return local_update.build_member(
      settings,
      driver_lib.BuildContext(
          build_model(dtype) if model is None else model, None, run_settings
      ),
  )


def build_model(dtype='float64'):
  """Half the mean squared error of x . w, with w in two tensors."""

  @tf.function
  def predict(weights, x, training=True):
    del training
    flat = tf.concat([tf.reshape(w, [-1]) for w in weights[0]], axis=0)
    return tf.linalg.matvec(x, flat)

  return tff.learning.models.FunctionalModel(
      initial_weights=(
          tuple(np.full(s, START, dtype) for s in ([2], [2, 2])), ()
      ),
      predict_on_batch_fn=predict,
      loss_fn=lambda output, y, sample_weight=None: 0.5
      * tf.reduce_mean(tf.square(output - y)),
      input_spec=(
          tf.TensorSpec([None, DIMENSION], dtype),
          tf.TensorSpec([None], dtype),
      ),
  )


def build_linear_model(slope, dtype='float64'):
  """A loss whose gradient is `slope` everywhere; examples do not matter."""
  slope = np.asarray(slope, dtype)

  @tf.function
  def predict(weights, x, training=True):
    del training
    return tf.fill([tf.shape(x)[0]], tf.reduce_sum(weights[0][0] * slope))

  return tff.learning.models.FunctionalModel(
      initial_weights=((np.zeros(slope.shape, dtype),), ()),
      predict_on_batch_fn=predict,
      loss_fn=lambda output, y, sample_weight=None: tf.reduce_mean(output),
      input_spec=(
          tf.TensorSpec([None, 1], dtype), tf.TensorSpec([None], dtype)
      ),
  )


def linear_cohort(num_clients, local_steps, dtype='float64'):
  """A cohort for `build_linear_model`, in batches of one."""
  shape = [num_clients, local_steps, 1]
  return driver_lib.CohortData(
      batches=(np.zeros([*shape, 1], dtype), np.zeros(shape, dtype)),
      num_examples=np.ones(num_clients, np.int32),
  )


class Data:
  """Draws of examples for each round."""

  def __init__(self, num_clients=10, num_examples=40):
    rng = np.random.default_rng(5)
    self.num_clients = num_clients
    self.x = rng.normal(size=[num_examples, DIMENSION])
    self.y = self.x @ rng.normal(size=DIMENSION) + 0.1 * rng.normal(
        size=num_examples
    )

  def draw(self, round_num):
    """Returns (x, y) with leading axes [M, L, B]."""
    rng = np.random.default_rng([17, round_num])
    rows = rng.integers(
        len(self.y), size=[self.num_clients, NUM_STEPS, BATCH_SIZE]
    )
    return self.x[rows], self.y[rows]

  def cohort(self, round_num, dtype='float64', empty=()):
    """Returns the clients' values; the `empty` ones hold NaN."""
    x, y = self.draw(round_num)
    sizes = np.full(self.num_clients, 40, np.int32)
    for m in empty:
      x[m], y[m], sizes[m] = np.nan, np.nan, 0
    return driver_lib.CohortData(
        batches=(x.astype(dtype), y.astype(dtype)), num_examples=sizes
    )


def compiled(driver, jit='off'):
  return execution.compile_process(driver.process, devices=CPU, jit=jit)


def initial_state(driver, program, settings, seed=0):
  weights = driver.process.get_model_weights(program.initialize())
  return driver.initial_state(program, weights, settings.process_rates, seed)


def point_of(state):
  weights = state.model_weights.trainable
  return np.concatenate([np.ravel(leaf) for leaf in weights])


def run(driver, program, data, rounds, state=None, dtype='float64'):
  """Yields state and metrics after each round."""
  state = program.initialize() if state is None else state
  for _ in range(rounds):
    cohort = driver.cohort(data.cohort(int(state.round_num), dtype))
    state, metrics = program.next(state, cohort)
    yield state, metrics


def draws(seed, dtype=tf.float64):
  """The random numbers of a run, for the transcription."""

  @tf.function
  def draw(round_num, client):
    path = random_seeds.derive_seed(seed, round_num, client)
    return random_seeds.draw_uniforms([DIMENSION], path, dtype)

  def uniforms(round_num, client):
    drawn = draw(tf.constant(round_num), tf.constant(client))
    return drawn.numpy().astype(np.float64)

  return uniforms


def qsgd(v, u, levels=LEVELS):
  """Returns Q_s(v), and its integers."""
  norm = np.sqrt(np.sum(v * v))
  whole = np.floor(levels * np.abs(v) / norm + u) * np.sign(v)
  return norm * whole / levels, whole.astype(np.int64)


def gradient(x, features, labels):
  return features.T @ (features @ x - labels) / len(labels)


def local_point(x, features, labels):
  """Returns where L local steps lead."""
  for batch, targets in zip(features, labels):
    x = x - STEP_SIZE * gradient(x, batch, targets)
  return x


def transcribe(name, data, rounds, *, uniforms=None, float_bits=64):
  """Yields (x, bits up, bits down, integers) after each round."""
  x, clients = np.full(DIMENSION, START), range(data.num_clients)
  for round_num in range(rounds):
    features, labels = data.draw(round_num)
    sent, up = [], float_bits * DIMENSION * data.num_clients
    if name == 'minibatch_sgd':
      means = [
          np.mean([
              gradient(x, features[m, k], labels[m, k])
              for k in range(NUM_STEPS)
          ], axis=0)
          for m in clients
      ]
      x = x - STEP_SIZE * np.mean(means, axis=0)
    else:
      points = [local_point(x, features[m], labels[m]) for m in clients]
      if name == 'fed_avg':
        x = np.mean(points, axis=0)
      elif name == 'fed_paq':
        sent = [qsgd(points[m] - x, uniforms(round_num, m)) for m in clients]
        x = x + np.mean([decoded for decoded, _ in sent], axis=0)
      else:
        sent = [
            qsgd((x - points[m]) / STEP_SIZE, uniforms(round_num, m))
            for m in clients
        ]
        mean = np.mean([decoded for decoded, _ in sent], axis=0)
        x = x - STEP_SIZE * SERVER_FACTOR * mean
      if sent:
        width = 1 + int(np.ceil(np.log2(LEVELS + 1)))
        up = data.num_clients * (float_bits + DIMENSION * width)
    yield x, up, float_bits * DIMENSION, [whole for _, whole in sent]


def check(name, *, dtype='float64', rounds=5, num_clients=10, jit='off'):
  """Compares an algorithm with its transcription; returns the rounds equal.

  In float64 x agrees to 1e-9 in all rounds. In float32 it does to 1e-5 until a
  draw rounds differently; then it is off by far more.
  """
  data = Data(num_clients)
  driver = build(MEMBERS[name], dtype=dtype)
  runs = run(driver, compiled(driver, jit), data, rounds, dtype=dtype)
  expected = transcribe(
      name, data, rounds, uniforms=draws(0, tf.as_dtype(dtype)),
      float_bits=int(dtype[-2:]),
  )
  tolerance, equal = (1e-9 if dtype == 'float64' else 1e-5), 0
  for (state, metrics), (x, up, down, integers) in zip(runs, expected):
    assert driver.messages(metrics) == (True, up, down, 0)
    assert metrics.clients_used == num_clients
    difference = np.abs(point_of(state) - x).max()
    if difference > tolerance and dtype == 'float32' and integers:
      assert difference > 1e-3
      break
    assert difference <= tolerance
    equal += 1
  assert dtype == 'float32' or equal == rounds
  return equal
