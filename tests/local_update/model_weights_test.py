"""Weights of a model: one dtype, and only replaced by their like."""

from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_localupdate import models


class State(NamedTuple):
  model_weights: Any
  other: Any = 3


STATE = State(
    tff.learning.models.ModelWeights(
        (tf.constant([1.0, 2.0], tf.float64),), (tf.constant(7, tf.int32),)
    )
)


def build_model(*dtypes):
  return tff.learning.models.FunctionalModel(
      initial_weights=(
          tuple(np.ones([2], dtype) for dtype in dtypes),
          (np.int32(5),),
      ),
      predict_on_batch_fn=tf.function(lambda weights, x, training=True: x),
      loss_fn=lambda output, label, sample_weight=None: tf.reduce_mean(output),
      input_spec=(tf.TensorSpec([None]), tf.TensorSpec([None])),
  )


@pytest.mark.parametrize('dtype', ['float32', 'float64'])
@pytest.mark.parametrize('is_asked', [False, True])
def test_checked_weights_are_arrays_of_their_dtype(dtype, is_asked):
  weights, found = models.checked_weights(
      build_model(dtype), dtype if is_asked else None
  )
  assert found == dtype
  np.testing.assert_array_equal(weights.trainable[0], [1.0, 1.0])
  assert weights.trainable[0].dtype == dtype
  assert weights.non_trainable[0] == 5


@pytest.mark.parametrize(
    'dtypes, asked, message',
    [
        (['float32', 'float64'], None, 'found float32, float64'),
        (['int32'], None, 'float32 or float64, all of one, found int32'),
        ([], None, 'found no weights'),
        (['float32'], 'float64', 'dtype float64, all of one, found float32'),
        (['float32'], 'int32', 'dtype must be one of'),
    ],
)
def test_wrong_weights(dtypes, asked, message):
  with pytest.raises(ValueError, match=message):
    models.checked_weights(build_model(*dtypes), asked)


def test_replace_weights_takes_other_containers():
  new = tff.learning.models.ModelWeights([np.array([5.0, 6.0])], [np.int32(8)])
  state = models.replace_weights(STATE, new)
  assert isinstance(state.model_weights.trainable, tuple)
  np.testing.assert_array_equal(state.model_weights.trainable[0], [5.0, 6.0])
  assert state.model_weights.non_trainable[0].numpy() == 8


@pytest.mark.parametrize(
    'trainable',
    [[np.zeros(3)], [np.zeros(2, np.float32)], [], [np.zeros(2)] * 2],
)
def test_replace_weights_checks_shapes_and_dtypes(trainable):
  new = tff.learning.models.ModelWeights(trainable, [np.int32(8)])
  with pytest.raises(ValueError, match='model_weights must have .* found'):
    models.replace_weights(STATE, new)
