"""A functional model as pure functions: its weights, and losses of them.

`tff.learning.models.FunctionalModel` keeps no variables. Its weights are
checked once when a process is built (`checked_weights`); inside it they are
values, and `build_model_losses` gives the losses as functions of them.
"""

from collections.abc import Callable, Mapping
import threading
from typing import Any, NamedTuple, Optional

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_localupdate import arguments as arguments_lib


def checked_weights(
    model: tff.learning.models.FunctionalModel, dtype: Optional[str] = None
) -> tuple[tff.learning.models.ModelWeights, str]:
  """Returns the model's weights as arrays, and the dtype of the trainable.

  Args:
    model: The model.
    dtype: `float32` or `float64`, which the trainable weights must have; None
      takes theirs.

  Raises:
    ValueError: If they are of several dtypes, or of another one.
  """
  trainable, non_trainable = tf.nest.map_structure(
      np.asarray, model.initial_weights
  )
  found = sorted({leaf.dtype.name for leaf in tf.nest.flatten(trainable)})
  allowed = [arguments_lib.checked_dtype(dtype)] if dtype else list(
      arguments_lib.FLOAT_DTYPES
  )
  if len(found) != 1 or found[0] not in allowed:
    raise ValueError(
        f'model must have trainable weights of dtype {" or ".join(allowed)}, '
        f'all of one, found {", ".join(found) or "no weights"}.'
    )
  return tff.learning.models.ModelWeights(trainable, non_trainable), found[0]


def replace_weights(
    state: Any, model_weights: tff.learning.models.ModelWeights
) -> Any:
  """Returns `state`, which has a field `model_weights`, with other ones.

  Raises:
    ValueError: If number, shape or dtype of the weights differ.
  """
  old = [tf.convert_to_tensor(w) for w in tf.nest.flatten(state.model_weights)]
  new = [tf.convert_to_tensor(w) for w in tf.nest.flatten(model_weights)]
  old_specs = [(w.dtype.name, tuple(w.shape)) for w in old]
  new_specs = [(w.dtype.name, tuple(w.shape)) for w in new]
  if old_specs != new_specs:
    raise ValueError(
        'model_weights must have the dtypes and shapes of the old ones, '
        f'{old_specs}, found {new_specs}.'
    )
  return state._replace(
      model_weights=tf.nest.pack_sequence_as(state.model_weights, new)
  )


_running_eagerly = threading.RLock()

# Maps (trainable weights, batch) to a loss.
LossFn = Callable[[Any, Any], tf.Tensor]


class ModelLosses(NamedTuple):
  """Losses at given trainable weights on a given batch.

  Means over the batch in training and outside of it; and the losses [n] of its
  n examples outside of training, None where there is no such function.
  """

  training: LossFn
  evaluation: LossFn
  examples: Optional[LossFn]


def build_model_losses(
    model: tff.learning.models.FunctionalModel,
    non_trainable: Any,
    example_loss_fn: Optional[Callable[[Any, Any], tf.Tensor]] = None,
) -> ModelLosses:
  """Returns the losses of `model` as functions of its trainable weights.

  A batch is an (x, y) pair, or a mapping with the keys x and y. The losses come
  in the dtype of the weights.

  Args:
    model: The model; its loss is the mean over a batch.
    non_trainable: The values of its non-trainable weights.
    example_loss_fn: Maps (output, labels) of n examples to their losses [n].

  Returns:
    Functions that raise ValueError if the loss of the model is no scalar, or
    `example_loss_fn` returns no vector.
  """

  def build(name, loss_fn, *, training, rank):
    def loss(weights, batch):
      features, labels = _features_and_labels(batch)
      output = _predict(model, (weights, non_trainable), features, training)
      value = tf.convert_to_tensor(loss_fn(output, labels))
      if value.shape.rank not in (None, rank):
        raise ValueError(
            f'{name} must return a tensor of rank {rank}, found shape '
            f'{value.shape}.'
        )
      return tf.cast(value, tf.nest.flatten(weights)[0].dtype)

    return loss

  return ModelLosses(
      training=build('model.loss', model.loss, training=True, rank=0),
      evaluation=build('model.loss', model.loss, training=False, rank=0),
      examples=example_loss_fn and build(
          'example_loss_fn', example_loss_fn, training=False, rank=1
      ),
  )


def mean_example_loss(
    example_loss: LossFn,
    weights: Any,
    examples: Any,
    num_examples: tf.Tensor,
    rows_per_pass: int,
) -> tf.Tensor:
  """Returns the mean loss of the first `num_examples` rows of `examples`.

  Goes through the rows in passes of one size, so that memory does not grow with
  the client, and stops after the last row that counts: padding costs nothing.

  Args:
    example_loss: As `ModelLosses.examples`.
    weights: The trainable weights.
    examples: A structure of tensors [N, ...].
    num_examples: An int32 scalar, at most N.
    rows_per_pass: The number of rows in one pass.

  Returns:
    The mean, a scalar in the dtype of the weights; NaN if `num_examples` is 0.
  """
  dtype = tf.nest.flatten(weights)[0].dtype
  offsets = tf.range(rows_per_pass)

  def add_pass(start, total):
    rows = start + offsets
    counted = rows < num_examples
    rows = tf.minimum(rows, num_examples - 1)
    batch = tf.nest.map_structure(lambda leaf: tf.gather(leaf, rows), examples)
    losses = example_loss(weights, batch)
    # A selection, not a product: a repeated row must not spread its NaN.
    losses = tf.where(counted, losses, tf.zeros_like(losses))
    return start + rows_per_pass, total + tf.reduce_sum(losses)

  _, total = tf.while_loop(
      lambda start, total: start < num_examples,
      add_pass,
      (tf.constant(0), tf.constant(0.0, dtype)),
      parallel_iterations=1,
  )
  return total / tf.cast(num_examples, dtype)


def _predict(
    model: tff.learning.models.FunctionalModel,
    weights: Any,
    features: Any,
    training: bool,
) -> Any:
  """Returns the model's output, if possible without a call in the graph.

  The gradient of a call of a `tf.function` is a call too, and constants of the
  forward pass (a permutation, say) become arguments of the backward pass. XLA
  then takes all that they come with, examples included, for constants of the
  program, and compiles anew for each batch.
  """
  arguments = tf.nest.map_structure(tf.convert_to_tensor, (weights, features))
  # Outside graphs XLA sees no more than the call.
  if not tf.executing_eagerly() and _works_in_place(
      model, arguments, training
  ):
    return _predict_in_place(model, arguments, training)
  return model.predict_on_batch(*arguments, training)


def _predict_in_place(
    model: tff.learning.models.FunctionalModel, arguments: Any, training: bool
) -> Any:
  """Traces the function of the model into the graph that is being built."""
  with _running_eagerly:  # A setting of the process, not of the thread.
    before = tf.config.functions_run_eagerly()
    tf.config.run_functions_eagerly(True)
    try:
      return model.predict_on_batch(*arguments, training)
    finally:
      tf.config.run_functions_eagerly(before)


def _works_in_place(
    model: tff.learning.models.FunctionalModel, arguments: Any, training: bool
) -> bool:
  """Finds out in a graph of its own, as a failure would leave operations."""
  with tf.Graph().as_default() as graph:
    arguments = tf.nest.map_structure(
        lambda leaf: tf.compat.v1.placeholder(leaf.dtype, leaf.shape), arguments
    )
    given = len(graph.get_operations())
    try:
      _predict_in_place(model, arguments, training)
    except tf.errors.OperatorNotAllowedInGraphError:
      return False  # It needs AutoGraph, which only the call applies.
    # Keras leaves placeholders of its own behind, which XLA refuses.
    made = graph.get_operations()[given:]
    return all(op.type != 'Placeholder' for op in made)


def _features_and_labels(batch: Any) -> tuple[Any, Any]:
  if isinstance(batch, Mapping):
    return batch['x'], batch['y']
  features, labels = batch
  return features, labels
