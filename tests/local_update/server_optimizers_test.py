"""The optimizer contract: state, structures, hyperparameters, errors.

Server optimizers: spec values, transcriptions, equality with TFF.
"""

import collections

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_localupdate import server_optimizers


def build_counting(**kwargs):
  """x <- x - rate (slot + 1), slot <- slot + gradient."""

  def leaf_step(rate, weight, gradient, slot):
    return weight - rate * (slot + 1.0), slot + gradient

  return server_optimizers.LeafwiseOptimizer(
      0.5, leaf_step, initial_slots={'slot': 2.0}, **kwargs
  )


def specs_of(weights):
  return tf.nest.map_structure(
      lambda w: tf.TensorSpec(w.shape, w.dtype), weights
  )


@pytest.mark.parametrize('dtype', ['float32', 'float64'])
def test_state_has_the_dtype_of_the_weights(dtype):
  weights = {'a': tf.zeros([2], dtype), 'b': (tf.zeros([], dtype),)}
  state = build_counting().initialize(specs_of(weights))
  assert list(state) == ['learning_rate', 'step', 'slot']
  assert state['learning_rate'].dtype == dtype
  assert state['step'].dtype == tf.int64
  tf.nest.assert_same_structure(state['slot'], weights)
  assert state['slot']['a'].dtype == dtype
  np.testing.assert_array_equal(state['slot']['a'], [2.0, 2.0])


def test_next_steps_each_leaf_of_a_structure():
  optimizer = build_counting()
  weights = collections.OrderedDict(b=tf.constant([1.0]), a=tf.constant(4.0))
  gradients = collections.OrderedDict(b=tf.constant([3.0]), a=tf.constant(5.0))
  state = optimizer.initialize(specs_of(weights))
  state, weights = optimizer.next(state, weights, gradients)
  assert list(weights) == ['b', 'a']
  assert (weights['b'].numpy(), weights['a'].numpy()) == (-0.5, 2.5)
  assert (state['slot']['b'].numpy(), state['slot']['a'].numpy()) == (5.0, 7.0)
  assert state['step'].numpy() == 1


def test_rate_factor_gets_the_step_counted_from_one():
  optimizer = build_counting(rate_factor=lambda step: step)
  weights = [tf.constant(0.0)]
  state = optimizer.initialize(specs_of(weights))
  for _ in range(2):
    state, weights = optimizer.next(state, weights, [tf.constant(0.0)])
  assert weights[0].numpy() == -0.5 * 1 * 3 - 0.5 * 2 * 3
  assert state['learning_rate'].numpy() == 0.5


def test_missing_gradient_leaves_weight_and_slot():
  optimizer = build_counting()
  weights = [tf.constant(1.0), tf.constant(1.0)]
  state = optimizer.initialize(specs_of(weights))
  state, weights = optimizer.next(state, weights, [None, tf.constant(1.0)])
  assert [w.numpy() for w in weights] == [1.0, -0.5]
  assert [s.numpy() for s in state['slot']] == [2.0, 3.0]


def test_indexed_slices_are_summed():
  optimizer = build_counting()
  weights = [tf.zeros([2])]
  state = optimizer.initialize(specs_of(weights))
  slices = tf.IndexedSlices(tf.constant([1.0, 2.0]), tf.constant([1, 1]), [2])
  state, _ = optimizer.next(state, weights, [slices])
  np.testing.assert_array_equal(state['slot'][0], [2.0, 5.0])


@pytest.mark.parametrize('dtype', ['float32', 'float64'])
def test_set_hparams_keeps_full_precision_and_dtype(dtype):
  optimizer = build_counting()
  state = optimizer.initialize([tf.TensorSpec([], dtype)])
  changed = optimizer.set_hparams(state, {'learning_rate': 0.1})
  assert changed['learning_rate'].dtype == dtype
  assert changed['learning_rate'].numpy() == np.dtype(dtype).type(0.1)
  assert optimizer.get_hparams(changed).keys() == {'learning_rate'}
  assert state['learning_rate'].numpy() == 0.5
  same = optimizer.set_hparams(changed, optimizer.get_hparams(changed))
  assert same['learning_rate'].numpy() == changed['learning_rate'].numpy()


def test_initialize_refuses_another_dtype():
  optimizer = build_counting(dtype='float64')
  with pytest.raises(ValueError, match='float64, found float32'):
    optimizer.initialize([tf.TensorSpec([], tf.float32)])


@pytest.mark.parametrize(
    'dtypes', [(), (tf.float32, tf.float64), (tf.int32,), (tf.bfloat16,)]
)
def test_initialize_refuses_mixed_or_unknown_dtypes(dtypes):
  with pytest.raises(ValueError, match='one dtype, float32 or float64, found'):
    build_counting().initialize([tf.TensorSpec([], d) for d in dtypes])


def test_next_refuses_other_shapes():
  optimizer = build_counting()
  state = optimizer.initialize([tf.TensorSpec([2])])
  with pytest.raises(ValueError, match='same structure'):
    optimizer.next(state, [tf.zeros([2])], [tf.zeros([3])])


@pytest.mark.parametrize('learning_rate', [-1.0, float('nan')])
def test_learning_rate_of_a_formula_is_checked(learning_rate):
  with pytest.raises(ValueError, match='learning_rate must be'):
    server_optimizers.LeafwiseOptimizer(learning_rate, lambda *args: args)


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
