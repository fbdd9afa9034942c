"""InnerLoop: spec values, a transcription, enumeration, Monte Carlo."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from tests.local_update import spec_examples
from tff_localupdate import theta as theta_lib
from tff_localupdate.local_update import inner_loop

TOLERANCES = [('float64', 1e-9), ('float32', 1e-5)]


def run(loss_fn, start, batches, gamma, theta, dtype='float64'):
  """Returns q of one weight tensor; batches are arrays [K, B, ...]."""
  weights = (tf.constant(start, dtype),)
  batches = tuple(tf.constant(b, dtype) for b in batches)
  (q,) = inner_loop.inner_loop(
      lambda w, batch: loss_fn(w[0], batch),
      weights,
      batches,
      gamma,
      theta_lib.parse_theta(theta),
  )
  assert q.dtype == dtype
  return q.numpy()


def take(client, indices):
  indices = np.asarray(indices)
  return tuple(array[indices] for array in client)


@pytest.mark.parametrize('dtype, tolerance', TOLERANCES)
def test_g15_quadratic_full_gradients(dtype, tolerance):
  batches = take(spec_examples.QUADRATICS[0], [[0]] * 3)
  q = run(
      spec_examples.quadratic_loss, (1.0, 1.0), batches, 0.3, '1:3', dtype
  )
  np.testing.assert_allclose(q, (0.47625, 2.055), rtol=0, atol=tolerance)


@pytest.mark.parametrize('dtype, tolerance', TOLERANCES)
def test_g17_duplicate_draws_count(dtype, tolerance):
  batches = take(spec_examples.SCALAR_QUADRATICS, [[0, 1], [1, 1], [0, 0]])
  q = run(spec_examples.quadratic_loss, (1.0,), batches, 0.2, '1:3', dtype)
  np.testing.assert_allclose(q, (-1.72,), rtol=0, atol=tolerance)


@pytest.mark.parametrize('dtype, tolerance', TOLERANCES)
def test_g19_logistic_full_batch(dtype, tolerance):
  batches = take(spec_examples.LOGISTIC[0], [[0, 1, 2]] * 3)
  q = run(
      spec_examples.logistic_loss,
      spec_examples.LOGISTIC_START,
      batches,
      0.5,
      '1:3',
      dtype,
  )
  np.testing.assert_allclose(
      q, (-0.9173310426, -0.0295667362), rtol=0, atol=tolerance
  )


def test_g18_expectation_by_enumeration():
  """With replacement q is unbiased for the surrogate, shuffled it is not."""

  def mean_q(draws):
    values = [
        run(
            spec_examples.quadratic_loss,
            (1.0,),
            take(spec_examples.SCALAR_QUADRATICS, np.reshape(draw, [2, 1])),
            0.2,
            '1:2',
        )
        for draw in draws
    ]
    return np.mean(values)

  replaced = mean_q(itertools.product((0, 1), repeat=2))
  shuffled = mean_q(itertools.permutations((0, 1)))
  np.testing.assert_allclose(replaced, -1.6, rtol=0, atol=1e-9)
  np.testing.assert_allclose(shuffled, -2.0, rtol=0, atol=1e-9)


def test_g18_expectation_by_monte_carlo():
  """The 99.99 % interval of 4,000 draws holds -1.6 and excludes -2.0.

  q is 1.8, -2.6, -1.4 or -4.2, of standard deviation 2.2; the interval reaches
  3.89 standard errors, 0.13, to each side of the mean.
  """
  draws = np.random.default_rng(0).integers(0, 2, size=[4000, 2, 1])
  theta = theta_lib.Theta.ones(2)

  @tf.function
  def q_of(batches):
    return inner_loop.inner_loop(
        spec_examples.quadratic_loss,
        tf.constant([1.0], tf.float64),
        batches,
        0.2,
        theta,
    )

  batches = take(spec_examples.SCALAR_QUADRATICS, draws)
  q = tf.vectorized_map(q_of, tuple(tf.constant(b) for b in batches)).numpy()
  half_width = 3.89 * q.std() / np.sqrt(len(q))
  assert abs(q.mean() + 1.6) < half_width < 0.15
  assert abs(q.mean() + 2.0) > half_width


@pytest.mark.parametrize(
    'theta',
    ['1:1', '1:6', 'k6', '2,2,2', '0.5,0,2', '1,2,3,4', '0,0,3', '4,0'],
)
@pytest.mark.parametrize('gamma', [0.0, 0.3, 1.5])
def test_random_cases_equal_a_transcription(theta, gamma):
  generator = np.random.default_rng(len(theta))
  weights = theta_lib.parse_theta(theta).weights
  shape = (len(weights), 4)
  start = generator.normal(size=3)
  matrices = generator.normal(size=shape + (3, 3))
  matrices = matrices @ np.swapaxes(matrices, -1, -2) / 3
  centres = generator.normal(size=shape + (3,))
  features = generator.normal(size=shape + (3,))
  labels = generator.integers(0, 2, size=shape).astype(float)
  for loss_fn, gradient_fn, batches in (
      (
          spec_examples.quadratic_loss,
          spec_examples.quadratic_gradient,
          (matrices, centres),
      ),
      (
          spec_examples.logistic_loss,
          spec_examples.logistic_gradient,
          (features, labels),
      ),
  ):
    expected = spec_examples.transcribe_inner_loop(
        gradient_fn, start, zip(*batches), gamma, weights
    )
    found = run(loss_fn, start, batches, gamma, theta)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


def test_gamma_zero_sums_gradients_at_one_point():
  batches = take(spec_examples.LOGISTIC[0], [[0, 1], [1, 2], [2, 2]])
  w = np.array(spec_examples.LOGISTIC_START)
  gradients = [spec_examples.logistic_gradient(w, *b) for b in zip(*batches)]
  found = run(spec_examples.logistic_loss, w, batches, 0.0, '1:3')
  np.testing.assert_allclose(found, np.sum(gradients, axis=0), rtol=1e-12)
  assert np.linalg.norm(found) > 0.1


@pytest.mark.parametrize('gamma', [0.0, 0.7, 1e9])
def test_one_step_does_not_depend_on_gamma(gamma):
  batches = take(spec_examples.LOGISTIC[0], [[0, 1]])
  w = np.array(spec_examples.LOGISTIC_START)
  found = run(spec_examples.logistic_loss, w, batches, gamma, '1:1')
  expected = spec_examples.logistic_gradient(w, *(b[0] for b in batches))
  np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_weight_zero_leaves_out_a_gradient_but_no_step():
  def q(theta):
    num_steps = theta_lib.parse_theta(theta).num_steps
    batches = take(spec_examples.LOGISTIC[1], [[0], [1], [1]][:num_steps])
    start = spec_examples.LOGISTIC_START
    return run(spec_examples.logistic_loss, start, batches, 0.5, theta)

  third = q('1,1,1') - q('1,1')
  np.testing.assert_allclose(q('k3'), third, rtol=1e-12)
  np.testing.assert_allclose(q('0,0,2'), 2 * third, rtol=1e-12)
  np.testing.assert_allclose(q('0.5,0,2'), 0.5 * q('1') + 2 * third, rtol=1e-12)


def test_weight_zero_leaves_out_a_gradient_that_is_not_finite():
  # The loss is linear in x, with these slopes.
  batches = (np.array([[np.nan], [3.0], [3.0]]),)

  def loss_fn(x, batch):
    return tf.reduce_sum(x * batch[0])

  q = run(loss_fn, (0.0,), batches, 0.0, '0,1,2')
  np.testing.assert_array_equal(q, [9.0])


def test_theta_of_three_kinds_agrees_under_xla():
  """One K-step loop, compiled; a whole structure of weights and batches."""
  generator = np.random.default_rng(3)
  weights = {
      'w': tf.constant(generator.normal(size=[4, 2])),
      'b': [tf.constant(generator.normal(size=[2]))],
  }
  batches = {
      'x': tf.constant(generator.normal(size=[5, 3, 4])),
      'y': tf.constant(generator.normal(size=[5, 3, 2])),
  }

  def loss_fn(weights, batch):
    output = tf.tanh(batch['x'] @ weights['w'] + weights['b'][0])
    return tf.reduce_mean(tf.square(output - batch['y']))

  for text in ('1:5', 'k5', '1,0,3,0,5'):
    theta = theta_lib.parse_theta(text)

    def q(gamma, theta=theta):
      return inner_loop.inner_loop(loss_fn, weights, batches, gamma, theta)

    gamma = tf.constant(0.3, tf.float64)
    eager = q(gamma)
    tf.nest.assert_same_structure(eager, weights)
    for compiled in (False, True):
      graph = tf.function(q, jit_compile=compiled)(gamma)
      for a, b in zip(tf.nest.flatten(eager), tf.nest.flatten(graph)):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_rate_is_not_rounded_to_float32():
  batches = take(spec_examples.QUADRATICS[0], [[0]] * 2)
  gamma = 1.0 / 3.0
  expected = spec_examples.transcribe_inner_loop(
      spec_examples.quadratic_gradient,
      np.ones(2),
      zip(*batches),
      gamma,
      (1.0, 1.0),
  )
  for value in (gamma, tf.constant(gamma, tf.float64)):
    found = run(spec_examples.quadratic_loss, (1.0, 1.0), batches, value, '1:2')
    np.testing.assert_allclose(found, expected, rtol=1e-15)


def test_sparse_and_missing_gradients_become_dense():
  weights = (tf.ones([4, 2]), tf.ones([3]))
  rows = tf.constant([[[1, 1]], [[3, 1]]])

  def loss_fn(weights, batch):
    return tf.reduce_sum(tf.gather(weights[0], batch[0])) / 2.0

  embedding, unused = inner_loop.inner_loop(
      loss_fn, weights, (rows,), 0.1, theta_lib.Theta.ones(2)
  )
  np.testing.assert_allclose(
      embedding, [[0.0, 0.0], [1.5, 1.5], [0.0, 0.0], [0.5, 0.5]]
  )
  np.testing.assert_array_equal(unused, np.zeros(3))


def test_non_finite_gradient_is_passed_on():
  batches = (np.array([[[np.nan, 0.0]]]), np.array([[1.0]]))
  q = run(spec_examples.logistic_loss, (0.0, 0.0), batches, 0.1, '1:1')
  assert not np.isfinite(q).all()


@pytest.mark.parametrize('num_batches', [2, 4])
def test_number_of_batches_is_checked(num_batches):
  batches = take(spec_examples.LOGISTIC[0], [[0]] * num_batches)
  with pytest.raises(
      ValueError, match=rf'batches must hold K\(Theta\) = 3 .* {num_batches}'
  ):
    run(spec_examples.logistic_loss, (0.0, 0.0), batches, 0.1, '1:3')


@pytest.mark.parametrize('theta', ['1:1', '1:3', 'k3', '0,1,2'])
@pytest.mark.parametrize('gamma', [0.0, 0.5])
def test_first_loss_is_that_of_the_first_batch_at_the_start(theta, gamma):
  theta = theta_lib.parse_theta(theta)
  indices = [[0, 1], [1, 1], [2, 0]][: theta.num_steps]
  batches = take(spec_examples.LOGISTIC[0], indices)
  start = np.array(spec_examples.LOGISTIC_START)
  q, loss = inner_loop.inner_loop_and_first_loss(
      spec_examples.logistic_loss,
      tf.constant(start),
      tuple(map(tf.constant, batches)),
      gamma,
      theta,
  )
  first = tuple(b[0] for b in batches)
  np.testing.assert_allclose(
      loss, spec_examples.logistic_value(start, *first), rtol=1e-12
  )
  expected = spec_examples.transcribe_inner_loop(
      spec_examples.logistic_gradient,
      start,
      zip(*batches),
      gamma,
      theta.weights,
  )
  np.testing.assert_allclose(q, expected, rtol=1e-12)


def test_first_loss_is_finite_though_later_ones_are_not():
  batches = (tf.constant([[3.0], [np.nan], [np.inf]]),)

  def loss_fn(x, batch):
    return tf.reduce_sum(x * batch[0])

  _, loss = inner_loop.inner_loop_and_first_loss(
      loss_fn, tf.constant([2.0]), batches, 0.1, theta_lib.Theta.ones(3)
  )
  assert loss.numpy() == 6.0


def test_sum_gradients_observes_each_step_once():
  slopes = tf.constant([[1.0], [10.0], [100.0]])

  def observe(step, batch, loss):
    weight = tf.cast(step + 1, tf.float32)
    return weight * tf.reduce_sum(batch), loss

  q, (total, losses) = inner_loop.sum_gradients(
      lambda weights, batch: tf.reduce_sum(weights * batch),
      tf.constant([2.0]),
      lambda step: slopes[step],
      0.0,
      theta_lib.Theta.ones(3),
      3,
      observe=observe,
      observed=(tf.constant(0.0), tf.constant(0.0)),
  )
  assert q.numpy() == [111.0]
  assert (total.numpy(), losses.numpy()) == (321.0, 222.0)


def test_sum_gradients_without_steps_gives_zeros():
  q, observed = inner_loop.sum_gradients(
      lambda weights, batch: tf.reduce_sum(weights) / batch,
      tf.constant([2.0]),
      lambda step: tf.constant(0.0),
      0.1,
      theta_lib.parse_theta('1,2,3'),
      tf.constant(0),
      observe=lambda step, batch, loss: (),
      observed=(),
  )
  assert (q.numpy(), observed) == ([0.0], ())
