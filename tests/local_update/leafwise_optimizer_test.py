"""The optimizer contract: state, structures, hyperparameters, errors."""

import collections

import numpy as np
import pytest
import tensorflow as tf

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
def test_learning_rate_is_checked(learning_rate):
  with pytest.raises(ValueError, match='learning_rate must be'):
    server_optimizers.LeafwiseOptimizer(learning_rate, lambda *args: args)
