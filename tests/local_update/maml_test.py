"""K-MAML's gradient: G25, Theorem 4, finite differences, what biases it.

K-MAML by `process.next`: G25, Theorem 4, transcription, real models.
"""

import functools
import itertools

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.local_update import spec_examples
from tff_localupdate import execution
from tff_localupdate import server_optimizers
from tff_localupdate import theta as theta_lib
from tff_localupdate.local_update import client_work
from tff_localupdate.local_update import inner_loop
from tff_localupdate.local_update import maml as maml_lib
from tff_localupdate.local_update import process as process_lib
from tff_localupdate.local_update import server_step

TOLERANCES = [('float64', 1e-9), ('float32', 1e-5)]


def run(loss_fn, start, batches, gamma, num_steps, dtype='float64'):
  """Returns q of one weight tensor; batches are arrays [K + 1, B, ...]."""
  (q,) = maml_lib.maml_gradient(
      lambda w, batch: loss_fn(w[0], batch),
      (tf.constant(start, dtype),),
      tuple(tf.constant(b, dtype) for b in batches),
      gamma,
      num_steps,
  )
  assert q.dtype == dtype
  return q.numpy()


def take(client, indices):
  indices = np.asarray(indices)
  return tuple(array[indices] for array in client)


def random_quadratics(generator, shape, dimension=3):
  matrices = generator.normal(size=[*shape, dimension, dimension])
  matrices = matrices @ np.swapaxes(matrices, -1, -2) / dimension
  return matrices, generator.normal(size=[*shape, dimension])


def finite_differences(value_fn, x, step=1e-5):
  """Returns the gradient of a function of an array, by central differences."""
  gradient = np.zeros_like(x)
  for index in np.ndindex(x.shape):
    shift = np.zeros_like(x)
    shift[index] = step
    rise = value_fn(x + shift) - value_fn(x - shift)
    gradient[index] = rise / (2 * step)
  return gradient


@pytest.mark.parametrize('dtype, tolerance', TOLERANCES)
def test_g25_quadratic_full_gradients(dtype, tolerance):
  batches = take(spec_examples.QUADRATICS[0], [[0]] * 3)
  q = run(
      spec_examples.quadratic_loss, (1.0, 1.0), batches, 0.1, 2, dtype
  )
  np.testing.assert_allclose(
      q, (0.086340625, 0.60554375), rtol=0, atol=tolerance
  )


@pytest.mark.parametrize('num_steps', [1, 2, 3, 5])
@pytest.mark.parametrize('gamma', [0.0, 0.1, 0.7])
def test_theorem_4_full_gradient_steps_are_theta_2k_plus_1(num_steps, gamma):
  """K-MAML, InnerLoop and (I - gamma A)^{2K} A (x - c), to 1e-9."""
  generator = np.random.default_rng(num_steps)
  client = random_quadratics(generator, [4])
  x = generator.normal(size=3)
  everything = [[0, 1, 2, 3]] * (2 * num_steps + 1)
  q = run(
      spec_examples.quadratic_loss,
      x,
      take(client, everything[: num_steps + 1]),
      gamma,
      num_steps,
  )
  (same,) = inner_loop.inner_loop(
      lambda w, batch: spec_examples.quadratic_loss(w[0], batch),
      (tf.constant(x),),
      take(client, everything),
      gamma,
      theta_lib.Theta.single(2 * num_steps + 1),
  )
  hessian = client[0].mean(axis=0)
  factor = np.linalg.matrix_power(np.eye(3) - gamma * hessian, 2 * num_steps)
  gradient = spec_examples.quadratic_gradient(x, *client)
  np.testing.assert_allclose(q, factor @ gradient, rtol=0, atol=1e-9)
  np.testing.assert_allclose(q, same, rtol=0, atol=1e-9)


def test_batches_used_again_for_the_hessian_bias_the_mean():
  """Client (1, 0), (3, 2) at x = 1, gamma = 0.2, K = 1, B = 1, by enumeration.

  grad m_1 = (1 - 0.2 * 2)^2 * 2 * (1 - 1.5) = -0.36. Three independent batches
  and Theta_3 have that mean; K-MAML, whose first batch is in the step and in
  the Hessian, has (0.8 * -1.4 + 0.4 * 0.2) / 2 = -0.52.
  """
  client, gamma = spec_examples.SCALAR_QUADRATICS, 0.2
  loss_fn = spec_examples.quadratic_loss
  updates = [
      run(loss_fn, (1.0,), take(client, np.reshape(draw, [2, 1])), gamma, 1)
      for draw in itertools.product((0, 1), repeat=2)
  ]
  independent = [
      inner_loop.inner_loop(
          loss_fn,
          tf.constant([1.0], tf.float64),
          take(client, np.reshape(draw, [3, 1])),
          gamma,
          theta_lib.Theta.single(3),
      )
      for draw in itertools.product((0, 1), repeat=3)
  ]
  full = run(loss_fn, (1.0,), take(client, [[0, 1]] * 2), gamma, 1)
  np.testing.assert_allclose(full, [-0.36], rtol=0, atol=1e-12)
  np.testing.assert_allclose(np.mean(independent), -0.36, rtol=0, atol=1e-12)
  np.testing.assert_allclose(np.mean(updates), -0.52, rtol=0, atol=1e-12)


def test_random_batches_of_quadratics_equal_the_chain_rule():
  """q = (I - gamma A_1) ... (I - gamma A_K) g_{K+1}(x_{K+1})."""
  generator = np.random.default_rng(2)
  for num_steps, gamma in ((1, 0.4), (3, 0.2), (6, 0.1)):
    batches = random_quadratics(generator, [num_steps + 1, 5])
    start = generator.normal(size=3)
    x, factor = start, np.eye(3)
    for matrices, centres in list(zip(*batches))[:-1]:
      x = x - gamma * spec_examples.quadratic_gradient(x, matrices, centres)
      factor = factor @ (np.eye(3) - gamma * matrices.mean(axis=0))
    last = spec_examples.quadratic_gradient(x, *(b[-1] for b in batches))
    found = run(
        spec_examples.quadratic_loss, start, batches, gamma, num_steps
    )
    np.testing.assert_allclose(found, factor @ last, rtol=1e-11)


@pytest.mark.parametrize('num_steps, gamma', [(1, 0.5), (4, 1.5), (10, 0.3)])
def test_logistic_equals_finite_differences_of_the_loss_after_steps(
    num_steps, gamma
):
  generator = np.random.default_rng(num_steps)
  shape = [num_steps + 1, 6]
  batches = (
      generator.normal(size=[*shape, 2]),
      generator.integers(0, 2, size=shape).astype(float),
  )
  start = np.array(spec_examples.LOGISTIC_START)

  def loss_after_steps(x):
    *steps, last = zip(*batches)
    for batch in steps:
      x = x - gamma * spec_examples.logistic_gradient(x, *batch)
    return spec_examples.logistic_value(x, *last)

  found = run(spec_examples.logistic_loss, start, batches, gamma, num_steps)
  np.testing.assert_allclose(
      found, finite_differences(loss_after_steps, start), rtol=0, atol=1e-9
  )
  (first_order,) = inner_loop.inner_loop(
      lambda w, batch: spec_examples.logistic_loss(w[0], batch),
      (tf.constant(start),),
      tuple(map(tf.constant, batches)),
      gamma,
      theta_lib.Theta.single(num_steps + 1),
  )
  assert np.abs(found - first_order).max() > 1e-3


def test_structure_of_weights_by_finite_differences_and_xla():
  """A network whose Hessian mixes its weights; eager, graph and XLA."""
  generator = np.random.default_rng(5)
  weights = {
      'w': tf.constant(generator.normal(size=[4, 3])),
      'b': [tf.constant(generator.normal(size=[3]))],
      'unused': tf.ones([2], tf.float64),
  }
  batches = {
      'x': tf.constant(generator.normal(size=[4, 5, 4])),
      'y': tf.constant(generator.normal(size=[4, 5, 3])),
  }
  gamma = tf.constant(0.3, tf.float64)

  def loss_fn(weights, batch):
    output = tf.tanh(batch['x'] @ weights['w'] + weights['b'][0])
    return tf.reduce_mean(tf.square(output - batch['y']))

  def loss_after_steps(kernel):
    point = {**weights, 'w': tf.constant(kernel)}
    for k in range(3):
      batch = {name: leaf[k] for name, leaf in batches.items()}
      _, gradient = inner_loop.loss_and_gradient(loss_fn, point, batch)
      point = tf.nest.map_structure(lambda x, g: x - gamma * g, point, gradient)
    return loss_fn(point, {name: leaf[3] for name, leaf in batches.items()})

  def q():
    return maml_lib.maml_gradient(loss_fn, weights, batches, gamma, 3)

  eager = q()
  tf.nest.assert_same_structure(eager, weights)
  np.testing.assert_allclose(
      eager['w'],
      finite_differences(loss_after_steps, weights['w'].numpy()),
      rtol=0,
      atol=1e-9,
  )
  np.testing.assert_array_equal(eager['unused'], [0.0, 0.0])
  for compiled in (False, True):
    graph = tf.function(q, jit_compile=compiled)()
    for a, b in zip(tf.nest.flatten(eager), tf.nest.flatten(graph)):
      np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize('num_steps', [1, 3])
def test_gamma_zero_is_the_gradient_of_the_last_batch(num_steps):
  batches = take(spec_examples.LOGISTIC[0], [[0, 1]] * num_steps + [[2, 2]])
  w = np.array(spec_examples.LOGISTIC_START)
  found = run(spec_examples.logistic_loss, w, batches, 0.0, num_steps)
  last = (b[-1] for b in batches)
  np.testing.assert_allclose(
      found, spec_examples.logistic_gradient(w, *last), rtol=1e-12
  )


def test_hessian_product_of_logistic_loss():
  """H = X' diag(s (1 - s)) X / n."""
  features, labels = spec_examples.LOGISTIC[0]
  w, v = np.array(spec_examples.LOGISTIC_START), np.array([0.3, -2.0])
  s = 1 / (1 + np.exp(-features @ w))
  hessian = features.T @ (features * (s * (1 - s))[:, None]) / len(labels)
  found = maml_lib.hessian_product(
      spec_examples.logistic_loss,
      tf.constant(w),
      (tf.constant(features), tf.constant(labels)),
      tf.constant(v),
  )
  np.testing.assert_allclose(found, hessian @ v, rtol=1e-12)


def test_sparse_gradients_become_dense():
  """Loss of row r is |w_r|^4 / 4; each step scales it by 1 - gamma |w_r|^2."""
  table = np.array([[0.5, 1.0], [1.0, -1.0], [2.0, 0.0]])
  rows = tf.constant([[1], [1]])

  def loss_fn(weights, batch):
    squares = tf.reduce_sum(tf.square(tf.gather(weights, batch)), axis=-1)
    return tf.reduce_mean(tf.square(squares)) / 4.0

  found = maml_lib.maml_gradient(loss_fn, tf.constant(table), rows, 0.1, 1)

  def loss_after_step(row):
    row = row - 0.1 * (row @ row) * row
    return (row @ row) ** 2 / 4.0

  expected = np.zeros_like(table)
  expected[1] = finite_differences(loss_after_step, table[1])
  np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


def test_loss_without_curvature_has_the_gradient_of_its_last_batch():
  batches = (np.array([[[3.0, 1.0]], [[2.0, -1.0]]]),)
  q = run(
      lambda x, batch: tf.reduce_sum(x * batch[0]), (0.0, 0.0), batches, 0.5, 1
  )
  np.testing.assert_array_equal(q, [2.0, -1.0])


def test_first_loss_is_that_of_the_first_batch_at_the_start():
  batches = take(spec_examples.LOGISTIC[0], [[0, 1], [1, 1], [2, 0]])
  start = np.array(spec_examples.LOGISTIC_START)
  q, loss = maml_lib.maml_gradient_and_first_loss(
      spec_examples.logistic_loss,
      tf.constant(start),
      tuple(map(tf.constant, batches)),
      0.5,
      2,
  )
  value = spec_examples.logistic_value(start, *(b[0] for b in batches))
  np.testing.assert_allclose(loss, value, rtol=1e-12)
  same = run(spec_examples.logistic_loss, start, batches, 0.5, 2)
  np.testing.assert_array_equal(q, same)


def test_gradient_that_is_not_finite_is_passed_on():
  batches = (np.array([[[np.nan, 0.0]], [[1.0, 1.0]]]), np.ones([2, 1]))
  q = run(spec_examples.logistic_loss, (0.0, 0.0), batches, 0.1, 1)
  assert not np.isfinite(q).any()


def test_graph_does_not_grow_with_the_number_of_steps():
  def count_operations(num_steps):
    batches = take(spec_examples.LOGISTIC[0], [[0, 1]] * (num_steps + 1))
    traced = tf.function(maml_lib.maml_gradient).get_concrete_function(
        spec_examples.logistic_loss,
        tf.TensorSpec([2], tf.float64),
        tuple(map(tf.constant, batches)),
        0.1,
        num_steps,
    )
    graph = traced.graph.as_graph_def()
    bodies = [len(function.node_def) for function in graph.library.function]
    return len(graph.node), sorted(bodies)

  assert count_operations(2) == count_operations(20)


def test_arguments_are_checked():
  batches = take(spec_examples.LOGISTIC[0], [[0]] * 3)
  with pytest.raises(
      ValueError, match=r'batches must hold K \+ 1 = 4 batches, found 3'
  ):
    run(spec_examples.logistic_loss, (0.0, 0.0), batches, 0.1, 3)
  with pytest.raises(ValueError, match='num_steps must .* found 0'):
    run(spec_examples.logistic_loss, (0.0, 0.0), batches, 0.1, 0)


@pytest.fixture(scope='module', autouse=True)
def in_process():
  execution.set_default_context()


def build(model, num_steps=2, gamma=0.3, eta=0.05, batch_size=1, **kwargs):
  return maml_lib.build_maml(
      model,
      num_steps=num_steps,
      batch_size=batch_size,
      client_learning_rate=gamma,
      server_optimizer=server_optimizers.build_sgd(eta),
      **kwargs,
  )


@functools.lru_cache(maxsize=None)
def logistic_process(dtype='float64'):
  """A process that tests share; they set their own rates in its state."""
  return build(spec_examples.logistic_model(dtype), batch_size=3)


def weights_of(state):
  return np.asarray(state.model_weights.trainable[0])


def logistic_clients(generator, num_clients=3):
  return [
      spec_examples.logistic_batches(
          (generator.normal(size=[5, 2]), generator.integers(0, 2, 5)),
          generator.integers(0, 5, size=[3, 3]),
          'float64',
      )
      for _ in range(num_clients)
  ]


def transcribe_logistic(client, x, gamma):
  """The chain rule in NumPy, with the Hessian matrix of each batch."""
  factor = np.eye(2)
  *steps, last = zip(*client.batches)
  for features, labels in steps:
    s = 1 / (1 + np.exp(-features @ x))
    hessian = features.T @ (features * (s * (1 - s))[:, None]) / len(labels)
    factor = factor @ (np.eye(2) - gamma * hessian)
    x = x - gamma * spec_examples.logistic_gradient(x, features, labels)
  return factor @ spec_examples.logistic_gradient(x, *last)


def drawn_loss(client, x):
  drawn = (leaf.reshape([9, *leaf.shape[2:]]) for leaf in client.batches)
  return spec_examples.logistic_value(x, *drawn)


@pytest.mark.parametrize(
    'dtype, tolerance', [('float64', 1e-9), ('float32', 1e-5)]
)
def test_g25_through_the_process(dtype, tolerance):
  process = build(spec_examples.quadratic_model(dtype), gamma=0.1, eta=1.0)
  client = spec_examples.quadratic_batches(
      spec_examples.QUADRATICS[0], [[0]] * 3, dtype
  )
  state, metrics = process.next(process.initialize(), [client])
  q = (0.086340625, 0.60554375)
  np.testing.assert_allclose(
      1.0 - weights_of(state), q, rtol=0, atol=tolerance
  )
  np.testing.assert_allclose(
      metrics.update_norm, np.linalg.norm(q), rtol=0, atol=tolerance
  )


def test_theorem_4_equals_local_update_with_theta_2k_plus_1():
  """Two clients in full batches, three rounds, K = 3: to 1e-9."""
  num_steps = 3
  model = spec_examples.quadratic_model('float64')
  maml = build(model, num_steps, gamma=0.2, eta=0.3)
  local_update = process_lib.build_local_update(
      model,
      theta=theta_lib.Theta.single(2 * num_steps + 1),
      batch_size=1,
      client_learning_rate=0.2,
      server_optimizer=server_optimizers.build_sgd(0.3),
  )
  left, right = maml.initialize(), local_update.initialize()
  for _ in range(3):
    before = weights_of(left)
    left, _ = maml.next(left, full_batches(num_steps + 1))
    right, _ = local_update.next(right, full_batches(2 * num_steps + 1))
    np.testing.assert_allclose(
        weights_of(left), weights_of(right), rtol=0, atol=1e-9
    )
    assert np.abs(weights_of(left) - before).max() > 1e-3


def full_batches(num_batches):
  return [
      spec_examples.quadratic_batches(client, [[0]] * num_batches, 'float64')
      for client in spec_examples.QUADRATICS
  ]


def test_random_rounds_equal_a_transcription():
  """Mini-batches, rates per round, an empty client now and then."""
  generator = np.random.default_rng(1)
  process = logistic_process()
  state = process.initialize()
  assert isinstance(state, server_step.LocalUpdateState)
  x = np.array(spec_examples.LOGISTIC_START)
  for t in range(4):
    gamma, eta = generator.random(2)
    rates = {'client_learning_rate': gamma, 'server_learning_rate': eta}
    state = process.set_hparams(state, rates)
    clients = logistic_clients(generator)
    used = clients if t % 2 else clients[:2]
    if len(used) == 2:
      clients[2] = spec_examples.emptied(clients[2], np.nan)
    state, metrics = process.next(state, clients)
    q = np.mean([transcribe_logistic(c, x, gamma) for c in used], axis=0)
    loss = np.mean([drawn_loss(c, x) for c in used])
    x = x - eta * q
    np.testing.assert_allclose(weights_of(state), x, rtol=1e-12)
    np.testing.assert_allclose(metrics.update_norm, np.linalg.norm(q))
    np.testing.assert_allclose(metrics.loss_before_training, loss)
    assert metrics.client_learning_rate == gamma
    assert metrics.clients_used == len(used)
    assert metrics.clients_empty == 3 - len(used)
    assert metrics.examples_used == 9 * len(used)


def test_round_of_empty_clients_keeps_every_bit():
  process = logistic_process()
  before = process.initialize()
  empty = [
      spec_examples.emptied(client, np.inf)
      for client in logistic_clients(np.random.default_rng(0))
  ]
  after, metrics = process.next(before, empty)
  assert np.isnan(metrics.loss_before_training)
  assert (metrics.clients_used, metrics.clients_empty) == (0, 3)
  assert weights_of(after).tobytes() == weights_of(before).tobytes()


def test_diverged_client_is_counted_and_not_repaired():
  process = logistic_process()
  clients = logistic_clients(np.random.default_rng(0))
  clients[1].batches[0][1, 0, 0] = np.inf
  state, metrics = process.next(process.initialize(), clients)
  assert (metrics.clients_non_finite, metrics.clients_used) == (1, 3)
  assert not np.isfinite(weights_of(state)).all()


@pytest.mark.parametrize('loss', ['first_batch', 'full'])
def test_other_losses_before_training(loss):
  is_full = loss == 'full'
  process = build(
      spec_examples.logistic_model('float64'),
      batch_size=2,
      loss_before_training=loss,
      example_loss_fn=spec_examples.logistic_example_loss if is_full else None,
  )
  clients = []
  for data in spec_examples.LOGISTIC:
    client = spec_examples.logistic_batches(
        data, [[0, 1], [1, 1], [0, 0]], 'float64'
    )
    if is_full:
      padding = 4 - len(data[1])
      client = client_work.ClientBatchesAndExamples(
          *client,
          (
              np.pad(data[0], [(0, padding), (0, 0)]),
              np.pad(data[1], [(0, padding)]),
          ),
      )
    clients.append(client)
  _, metrics = process.next(process.initialize(), clients)
  x = np.array(spec_examples.LOGISTIC_START)
  rows = slice(None) if is_full else slice(2)
  expected = np.mean([
      spec_examples.logistic_value(x, *(array[rows] for array in data))
      for data in spec_examples.LOGISTIC
  ])
  np.testing.assert_allclose(metrics.loss_before_training, expected)


def test_xla_compiles_the_round_and_rates_compile_nothing():
  process = logistic_process()
  clients = logistic_clients(np.random.default_rng(3))
  cohort = tf.nest.map_structure(lambda *leaves: np.stack(leaves), *clients)
  program = execution.compile_process(process, jit='on')
  state = program.initialize()
  for gamma, eta in ((0.5, 0.3), (0.0, 0.2), (2.0, 0.1)):
    x = weights_of(state)
    rates = {'client_learning_rate': gamma, 'server_learning_rate': eta}
    state, _ = program.next(process.set_hparams(state, rates), cohort)
    q = np.mean([transcribe_logistic(c, x, gamma) for c in clients], axis=0)
    np.testing.assert_allclose(weights_of(state), x - eta * q, rtol=1e-12)
  assert program.num_compiled == 1


@pytest.mark.parametrize('dtype', ['float32', 'float64'])
def test_compiles_to_map_reduce_form(dtype):
  process = build(
      spec_examples.logistic_model(dtype),
      aggregator=tff.learning.robust_aggregator(weighted=False),
  )
  spec_examples.assert_map_reduce_form(process)


def keras_cnn():
  layers = [
      tf.keras.layers.Conv2D(
          2, 3, padding='same', activation='relu', input_shape=(6, 6, 1),
          dtype='float64',
      ),
      tf.keras.layers.MaxPool2D(dtype='float64'),
      tf.keras.layers.Flatten(dtype='float64'),
      tf.keras.layers.Dense(3, dtype='float64'),
  ]
  return layers, [6, 6, 1], tf.float64, []


def keras_lstm():
  layers = [
      tf.keras.layers.Embedding(5, 2, input_length=4, dtype='float64'),
      tf.keras.layers.LSTM(3, return_sequences=True, dtype='float64'),
      tf.keras.layers.Dense(3, dtype='float64'),
  ]
  return layers, [4], tf.int32, [4]


@pytest.mark.parametrize('make', [keras_cnn, keras_lstm])
def test_keras_models_by_finite_differences_of_the_loss_after_steps(make):
  """Along a random direction, in float64; K steps in eager TensorFlow."""
  tf.keras.utils.set_random_seed(1)
  layers, features, features_dtype, labels = make()
  loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
  model = tff.learning.models.functional_model_from_keras(
      tf.keras.Sequential(layers),
      loss_fn,
      (
          tf.TensorSpec([None, *features], features_dtype),
          tf.TensorSpec([None, *labels], tf.int64),
      ),
  )
  generator = np.random.default_rng(0)
  if features_dtype == tf.int32:
    x = generator.integers(0, 5, size=[3, 2, *features]).astype(np.int32)
  else:
    x = generator.normal(size=[3, 2, *features])
  y = generator.integers(0, 3, size=[3, 2, *labels])
  gamma = 0.5
  process = build(model, 2, gamma, 1.0, batch_size=2)
  client = client_work.ClientBatches((x, y), np.int32(2))
  state, metrics = process.next(process.initialize(), [client])
  assert metrics.clients_non_finite == 0
  start = [np.asarray(w) for w in model.initial_weights[0]]
  q = [
      old - np.asarray(new)
      for old, new in zip(start, state.model_weights.trainable)
  ]

  keras_model = tf.keras.Sequential(make()[0])  # TFF has spoilt the other.

  def loss_after_steps(weights):
    keras_model.set_weights(weights)
    for k in range(2):
      with tf.GradientTape() as tape:
        loss = loss_fn(y[k], keras_model(x[k], training=True))
      gradients = tape.gradient(loss, keras_model.trainable_variables)
      for variable, g in zip(keras_model.trainable_variables, gradients):
        variable.assign_sub(gamma * tf.convert_to_tensor(g))
    return loss_fn(y[2], keras_model(x[2], training=True)).numpy()

  direction = [generator.normal(size=w.shape) for w in start]
  step = 1e-5
  rise = loss_after_steps(
      [w + step * d for w, d in zip(start, direction)]
  ) - loss_after_steps([w - step * d for w, d in zip(start, direction)])
  slope = sum(np.sum(a * b) for a, b in zip(q, direction))
  np.testing.assert_allclose(slope, rise / (2 * step), rtol=1e-5)


@pytest.mark.parametrize(
    'changes, message',
    [
        ({'num_steps': 0}, 'num_steps must be a whole number .* found 0'),
        ({'batch_size': 0}, 'batch_size must be a whole number .* found 0'),
        ({'gamma': -1.0}, 'client_learning_rate must be .* found -1.0'),
        (
            {'loss_before_training': 'full'},
            "example_loss_fn must be given with .*'full', .* found None",
        ),
    ],
)
def test_values_of_arguments_are_checked(changes, message):
  with pytest.raises(ValueError, match=message):
    build(spec_examples.logistic_model('float32'), **changes)
