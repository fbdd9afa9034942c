"""Server optimizers: spec values, transcriptions, equality with TFF."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_localupdate import server_optimizers

# Spec G23 and G24: Yogi, eta 0.01, from (0, 1).
G_START = (0.0, 1.0)
G_GRADIENTS = ((1.0, -2.0), (0.5, -2.0), (-1.0, 0.1))
G23 = (-0.0203974585, 1.0274431696)
G24 = (-0.0242530787, 1.0351789541)

BUILDERS = [
    server_optimizers.build_sgd,
    server_optimizers.build_yogi,
    server_optimizers.build_adam,
    server_optimizers.build_adagrad,
]


def run(optimizer, weights, gradients, dtype='float64'):
  """Returns the iterates, by one traced step."""
  weights = [tf.constant(weights, dtype)]
  state = optimizer.initialize([tf.TensorSpec(weights[0].shape, dtype)])
  step = tf.function(optimizer.next)
  iterates = []
  for gradient in gradients:
    state, weights = step(state, weights, [tf.constant(gradient, dtype)])
    iterates.append(weights[0].numpy())
  return np.stack(iterates)


def random_gradients(num_steps=200, size=7):
  generator = np.random.default_rng(5)
  scales = 10.0 ** generator.integers(-4, 3, size)
  return generator.normal(size=(num_steps, size)) * scales


@pytest.mark.parametrize(
    'dtype, tolerance', [('float64', 1e-9), ('float32', 1e-5)]
)
@pytest.mark.parametrize(
    'bias_correction, expected', [(True, G23), (False, G24)]
)
def test_g23_g24_yogi(bias_correction, expected, dtype, tolerance):
  optimizer = server_optimizers.build_yogi(
      0.01, bias_correction=bias_correction, dtype=dtype
  )
  last = run(optimizer, G_START, G_GRADIENTS, dtype)[-1]
  np.testing.assert_allclose(last, expected, rtol=0, atol=tolerance)


def test_yogi_equals_a_transcription():
  eta, b1, b2, eps, v0 = 0.02, 0.8, 0.97, 1e-4, 0.3
  x, m, v = np.full(7, 0.5), np.zeros(7), np.full(7, v0)
  expected = []
  for t, g in enumerate(random_gradients(), 1):
    m = b1 * m + (1 - b1) * g
    v = v + (1 - b2) * np.sign(g**2 - v) * g**2
    rate = eta * np.sqrt(1 - b2**t) / (1 - b1**t)
    x = x - rate * m / (np.sqrt(v) + eps)
    expected.append(x)
  optimizer = server_optimizers.build_yogi(
      eta, beta_1=b1, beta_2=b2, epsilon=eps, initial_accumulator=v0
  )
  found = run(optimizer, np.full(7, 0.5), random_gradients())
  np.testing.assert_allclose(found, expected, rtol=1e-11)


def test_adam_equals_a_transcription():
  eta, b1, b2, eps = 0.02, 0.9, 0.999, 1e-7
  x, m, v = np.full(7, 0.5), np.zeros(7), np.zeros(7)
  expected = []
  for t, g in enumerate(random_gradients(), 1):
    m = b1 * m + (1 - b1) * g
    v = b2 * v + (1 - b2) * g**2
    x = x - eta * np.sqrt(1 - b2**t) / (1 - b1**t) * m / (np.sqrt(v) + eps)
    expected.append(x)
  found = run(
      server_optimizers.build_adam(eta), np.full(7, 0.5), random_gradients()
  )
  np.testing.assert_allclose(found, expected, rtol=1e-11)


def test_adagrad_equals_a_transcription():
  gradients = random_gradients()
  v = 0.1 + np.cumsum(gradients**2, axis=0)
  expected = 0.5 - np.cumsum(0.02 * gradients / np.sqrt(v + 1e-7), axis=0)
  optimizer = server_optimizers.build_adagrad(0.02)
  found = run(optimizer, np.full(7, 0.5), gradients)
  np.testing.assert_allclose(found, expected, rtol=1e-11)


@pytest.mark.parametrize('momentum', [0.0, 0.9])
def test_sgd_equals_a_transcription(momentum):
  gradients = random_gradients(num_steps=20)
  x, velocity, expected = np.full(7, 0.5), np.zeros(7), []
  for g in gradients:
    velocity = momentum * velocity + g
    x = x - 0.02 * velocity
    expected.append(x)
  optimizer = server_optimizers.build_sgd(0.02, momentum)
  found = run(optimizer, np.full(7, 0.5), gradients)
  np.testing.assert_allclose(found, expected, rtol=1e-11)


@pytest.mark.parametrize(
    'ours, stock',
    [
        (
            server_optimizers.build_sgd(0.02),
            tff.learning.optimizers.build_sgdm(0.02),
        ),
        (
            server_optimizers.build_sgd(0.02, 0.9),
            tff.learning.optimizers.build_sgdm(0.02, 0.9),
        ),
        (
            server_optimizers.build_yogi(0.02),
            tff.learning.optimizers.build_yogi(
                0.02,
                beta_2=0.99,
                epsilon=1e-5,
                initial_preconditioner_value=0.0,
            ),
        ),
        (
            server_optimizers.build_adam(0.02),
            tff.learning.optimizers.build_adam(0.02),
        ),
        (
            server_optimizers.build_adagrad(0.02),
            tff.learning.optimizers.build_adagrad(0.02),
        ),
    ],
    ids=['sgd', 'momentum', 'yogi', 'adam', 'adagrad'],
)
def test_equals_tff(ours, stock):
  gradients = np.random.default_rng(5).normal(size=(30, 7))
  found = run(ours, np.full(7, 0.5), gradients, 'float32')
  expected = run(stock, np.full(7, 0.5), gradients, 'float32')
  np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


def test_yogi_is_invariant_to_scaling_of_gradient_epsilon_and_start():
  """Spec 2(a): the delta form of an update differs only through eps and v0."""
  gamma, gradients = 1e-3, random_gradients(60)
  plain = server_optimizers.build_yogi(0.1, initial_accumulator=0.2)
  scaled = server_optimizers.build_yogi(
      0.1, epsilon=1e-5 * gamma, initial_accumulator=0.2 * gamma**2
  )
  np.testing.assert_allclose(
      run(scaled, np.zeros(7), gamma * gradients),
      run(plain, np.zeros(7), gradients),
      rtol=1e-9,
  )


def test_bias_correction_is_exact_after_many_steps_in_float32():
  optimizer = server_optimizers.build_adam(1.0)
  state = optimizer.initialize([tf.TensorSpec([], tf.float32)])
  state['step'] = tf.constant(2**31 + 5, tf.int64)  # Beyond int32.
  _, weights = optimizer.next(state, [tf.constant(0.0)], [tf.constant(1.0)])
  # m = 0.1, v = 1e-3 and no correction is left.
  np.testing.assert_allclose(
      weights[0].numpy(), -0.1 / (np.sqrt(1e-3) + 1e-7), rtol=1e-6
  )


@pytest.mark.parametrize('build', BUILDERS)
def test_rate_is_read_from_the_state(build):
  optimizer = build(0.5)
  state = optimizer.initialize([tf.TensorSpec([], tf.float64)])
  state = optimizer.set_hparams(state, {'learning_rate': 0.0})
  _, weights = optimizer.next(
      state, [tf.constant(3.0, tf.float64)], [tf.constant(1.0, tf.float64)]
  )
  assert weights[0].numpy() == 3.0


@pytest.mark.parametrize('build', BUILDERS)
@pytest.mark.parametrize('learning_rate', [-0.1, float('nan'), float('inf')])
def test_learning_rate_is_checked(build, learning_rate):
  with pytest.raises(ValueError, match=f'learning_rate .* {learning_rate}'):
    build(learning_rate)


@pytest.mark.parametrize('build', BUILDERS)
def test_dtype_is_checked(build):
  with pytest.raises(ValueError, match="dtype .* found 'float16'"):
    build(0.1, dtype='float16')
  with pytest.raises(ValueError, match='float32, found float64'):
    build(0.1, dtype='float32').initialize([tf.TensorSpec([], tf.float64)])


@pytest.mark.parametrize(
    'build, arguments, message',
    [
        (server_optimizers.build_sgd, {'momentum': 1.0}, 'momentum'),
        (server_optimizers.build_sgd, {'momentum': -0.1}, 'momentum'),
        (server_optimizers.build_yogi, {'beta_1': 1.0}, 'beta_1'),
        (server_optimizers.build_yogi, {'beta_2': -0.1}, 'beta_2'),
        (server_optimizers.build_yogi, {'epsilon': 0.0}, 'epsilon'),
        (
            server_optimizers.build_yogi,
            {'initial_accumulator': -1.0},
            'initial_accumulator',
        ),
        (server_optimizers.build_adam, {'beta_1': float('nan')}, 'beta_1'),
        (server_optimizers.build_adam, {'epsilon': -1.0}, 'epsilon'),
        (server_optimizers.build_adagrad, {'epsilon': 0.0}, 'epsilon'),
        (
            server_optimizers.build_adagrad,
            {'initial_accumulator': float('inf')},
            'initial_accumulator',
        ),
    ],
)
def test_hyperparameters_are_checked(build, arguments, message):
  with pytest.raises(ValueError, match=f'{message} must be .* found'):
    build(0.1, **arguments)
