"""Weights of a model: one dtype, and only replaced by their like.

Losses of a model: means, training flag, padding.
"""

import collections
from concurrent import futures
from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.local_update import spec_examples
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


WEIGHTS = (tf.constant(spec_examples.LOGISTIC_START, tf.float64),)


def logistic_losses():
  return models.build_model_losses(
      spec_examples.logistic_model('float64'),
      (),
      spec_examples.logistic_example_loss,
  )


def model_with(loss_fn):
  """A model whose output says whether it trains, through a factor 10."""

  @tf.function
  def predict(weights, x, training=True):
    (trainable,), non_trainable = weights
    output = tf.linalg.matvec(x, trainable) + sum(non_trainable)
    return 10.0 * output if training else output

  return tff.learning.models.FunctionalModel(
      initial_weights=((np.zeros(2, np.float32),), ()),
      predict_on_batch_fn=predict,
      loss_fn=loss_fn,
      input_spec=(tf.TensorSpec([None, 2]), tf.TensorSpec([None])),
  )


def mean_output(output, label, sample_weight=None):
  return tf.reduce_mean(output - label)


def test_g22_client_uniform_and_example_weighted_mean():
  losses = logistic_losses()
  values = [losses.evaluation(WEIGHTS, c) for c in spec_examples.LOGISTIC]
  np.testing.assert_allclose(np.mean(values), 0.7729979891, atol=1e-9)
  every = tuple(np.concatenate(a) for a in zip(*spec_examples.LOGISTIC))
  value = losses.evaluation(WEIGHTS, every)
  np.testing.assert_allclose(value, 0.7508605373, atol=1e-9)


def test_training_is_told_to_the_model():
  losses = models.build_model_losses(model_with(mean_output), ())
  weights = (tf.constant([1.0, 2.0]),)
  batch = (tf.constant([[1.0, 1.0], [2.0, 0.0]]), tf.zeros([2]))
  assert losses.training(weights, batch).numpy() == 25.0
  assert losses.evaluation(weights, batch).numpy() == 2.5
  assert losses.examples is None


def test_non_trainable_weights_are_used():
  losses = models.build_model_losses(
      model_with(mean_output), (tf.constant(0.5),)
  )
  weights = (tf.constant([1.0, 2.0]),)
  batch = (tf.constant([[1.0, 1.0]]), tf.zeros([1]))
  assert losses.evaluation(weights, batch).numpy() == 3.5


def test_batch_may_be_a_mapping():
  losses = models.build_model_losses(model_with(mean_output), ())
  batch = collections.OrderedDict(
      y=tf.constant([1.0]), x=tf.constant([[1.0, 1.0]])
  )
  assert losses.evaluation((tf.constant([1.0, 2.0]),), batch).numpy() == 2.0


@pytest.mark.parametrize('rows_per_pass', [1, 2, 3, 7])
@pytest.mark.parametrize('padding', [0, 4])
def test_mean_example_loss_ignores_padding_and_passes(rows_per_pass, padding):
  features, labels = spec_examples.LOGISTIC[0]
  filler = np.full([padding, 2], np.nan)
  examples = (
      np.concatenate([features, filler]),
      np.concatenate([labels, filler[:, 0]]),
  )
  mean = tf.function(models.mean_example_loss)
  found = mean(
      logistic_losses().examples,
      WEIGHTS,
      tf.nest.map_structure(tf.constant, examples),
      tf.constant(3),
      rows_per_pass,
  )
  expected = spec_examples.logistic_value(
      np.array(spec_examples.LOGISTIC_START), features, labels
  )
  np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_mean_example_loss_of_an_empty_client_is_nan():
  loss = models.mean_example_loss(
      logistic_losses().examples,
      WEIGHTS,
      (tf.zeros([4, 2], tf.float64), tf.zeros([4], tf.float64)),
      tf.constant(0),
      2,
  )
  assert np.isnan(loss)


def test_mean_example_loss_passes_on_what_is_not_finite():
  examples = (
      tf.constant([[np.nan, 0.0], [1.0, 1.0]], tf.float64),
      tf.zeros([2], tf.float64),
  )
  mean = models.mean_example_loss
  examples_loss = logistic_losses().examples
  assert np.isnan(mean(examples_loss, WEIGHTS, examples, tf.constant(2), 2))


def test_loss_must_be_a_scalar():
  losses = models.build_model_losses(
      model_with(lambda output, label, sample_weight=None: output), ()
  )
  batch = (tf.zeros([3, 2]), tf.zeros([3]))
  with pytest.raises(ValueError, match=r'model.loss .* rank 0, found .*\(3,\)'):
    losses.training((tf.zeros([2]),), batch)


def test_example_loss_must_be_a_vector():
  losses = models.build_model_losses(
      model_with(mean_output), (), mean_output
  )
  batch = (tf.zeros([3, 2]), tf.zeros([3]))
  with pytest.raises(ValueError, match=r'example_loss_fn .* rank 1, found'):
    losses.examples((tf.zeros([2]),), batch)


def test_loss_calls_no_function_in_a_graph():
  losses = models.build_model_losses(model_with(mean_output), ())
  loss = tf.function(lambda w, x, y: losses.training((w,), (x, y)))
  graph = loss.get_concrete_function(
      tf.zeros([2]), tf.zeros([3, 2]), tf.zeros([3])
  ).graph
  assert not any('Call' in op.type for op in graph.get_operations())
  assert not tf.config.functions_run_eagerly()


def test_models_may_be_traced_in_two_threads():
  model = spec_examples.logistic_model(np.float32)
  batch = np.ones((2, 2), np.float32), np.ones(2, np.float32)

  def trace(_):
    losses = models.build_model_losses(model, ())
    graph_function = tf.function(
        lambda w: losses.training((w,), batch), autograph=False
    )
    return float(graph_function(tf.constant([0.5, -0.5])))

  with futures.ThreadPoolExecutor(4) as pool:
    found = list(pool.map(trace, range(40)))
  assert found == found[:1] * 40
  assert not tf.config.functions_run_eagerly()


def test_model_that_needs_autograph_keeps_it():
  @tf.function
  def predict(weights, x, training=True):
    del training
    (trainable,), _ = weights
    output = tf.linalg.matvec(x, trainable)
    if tf.reduce_sum(output) > 0:
      output *= 3.0
    return output

  model = tff.learning.models.FunctionalModel(
      initial_weights=((np.zeros(2, np.float32),), ()),
      predict_on_batch_fn=predict,
      loss_fn=mean_output,
      input_spec=(tf.TensorSpec([None, 2]), tf.TensorSpec([None])),
  )
  losses = models.build_model_losses(model, ())
  loss = tf.function(lambda w, x, y: losses.training((w,), (x, y)))
  for sign, expected in ((1.0, 3.0), (-1.0, -1.0)):
    value = loss(tf.constant([sign, 0.0]), tf.ones([3, 2]), tf.zeros([3]))
    assert value.numpy() == expected
  assert not tf.config.functions_run_eagerly()
