"""Flattening and clipping of vectors."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_localupdate.compression import messages


def test_unflatten_inverts_flatten():
  structure = {
      'a': tf.constant([[1.0, 2.0], [3.0, 4.0]]),
      'b': [tf.constant(5.0), tf.constant([6.0])],
  }
  vector = messages.flatten(structure)
  np.testing.assert_array_equal(vector, [1, 2, 3, 4, 5, 6])
  back = messages.unflatten(vector, structure)
  tf.nest.map_structure(np.testing.assert_array_equal, back, structure)


def test_group_9_clip():
  vector = tf.constant([3.0, 4.0], tf.float64)

  def clip(v, radius):
    return messages.clip(v, tf.constant(radius, tf.float64))

  np.testing.assert_allclose(clip(vector, 2.5), [1.5, 2.0], rtol=1e-15)
  np.testing.assert_array_equal(clip(vector, 10.0), [3.0, 4.0])
  np.testing.assert_array_equal(clip(0.0 * vector, 2.5), [0.0, 0.0])
  np.testing.assert_array_equal(clip(vector, np.inf), [3.0, 4.0])


@pytest.mark.parametrize('entry', [np.nan, np.inf])
def test_clip_does_not_repair(entry):
  clipped = messages.clip(tf.constant([entry, 1.0]), tf.constant(2.0))
  assert not np.all(np.isfinite(clipped))


def test_clip_of_a_norm_that_overflows_is_not_zero():
  clipped = messages.clip(tf.constant([3e19, 4e19]), tf.constant(1.0))
  assert np.all(np.isnan(clipped))


def test_types_that_are_vectors():
  messages.check_value_type('v', tff.TensorType(np.float32, [3]))
  messages.check_value_type('v', tff.TensorType(np.float64))
  messages.check_value_type(
      'v', tff.to_type([tff.TensorType(np.float32, [3]), (np.float32,)])
  )


@pytest.mark.parametrize(
    'value_type, error, message',
    [
        (tff.TensorType(np.int32, [3]), ValueError, 'found 3 .* int32'),
        (tff.to_type([np.float32, np.float64]), ValueError, 'found 2 entries'),
        (tff.TensorType(np.float32, [0]), ValueError, 'found 0 entries'),
        (tff.TensorType(np.float32, [None]), TypeError, 'fixed shapes'),
        (tff.SequenceType(np.float32), TypeError, 'fixed shapes'),
        (tff.to_type([]), ValueError, 'found 0 entries of dtype none'),
    ],
)
def test_types_that_are_not(value_type, error, message):
  with pytest.raises(error, match=message):
    messages.check_value_type('value_type', value_type)
