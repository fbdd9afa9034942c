"""K-MAML's gradient: G25, Theorem 4, finite differences, what biases it."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from tests.local_update import spec_examples
from tff_localupdate import theta as theta_lib
from tff_localupdate.local_update import inner_loop
from tff_localupdate.local_update import maml

TOLERANCES = [('float64', 1e-9), ('float32', 1e-5)]


def run(loss_fn, start, batches, gamma, num_steps, dtype='float64'):
  """Returns q of one weight tensor; batches are arrays [K + 1, B, ...]."""
  (q,) = maml.maml_gradient(
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
    return maml.maml_gradient(loss_fn, weights, batches, gamma, 3)

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
  found = maml.hessian_product(
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

  found = maml.maml_gradient(loss_fn, tf.constant(table), rows, 0.1, 1)

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
  q, loss = maml.maml_gradient_and_first_loss(
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
    traced = tf.function(maml.maml_gradient).get_concrete_function(
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
