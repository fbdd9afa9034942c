"""`FunctionalModel`s without variables, and the losses of the tasks."""

from collections.abc import Callable, Sequence
from typing import Any, Optional

import tensorflow as tf
import tensorflow_federated as tff

from baselines.tasks import gpu_operations
from baselines.tasks import initializers
from baselines.tasks import task

WeightSpec = Sequence[tuple[str, Sequence[int], initializers.Initializer]]
ApplyFn = Callable[[Sequence[tf.Tensor], tf.Tensor], tf.Tensor]


def build_functional_model(
    apply_fn: ApplyFn,
    weight_spec: WeightSpec,
    example_loss_fn: task.ExampleLossFn,
    input_spec: tuple[Any, Any],
    seed: int,
    dtype: str,
    reduce_fn: Callable[[tf.Tensor], tf.Tensor] = tf.reduce_mean,
) -> tff.learning.models.FunctionalModel:
  """Builds a model from a function of its weights.

  Written in plain operations, because models converted from Keras carry
  variable placeholders, cannot be made in float64 without a global switch, and
  cost more per call.

  Args:
    apply_fn: `(weights, x) -> output`; casts x to the weights' dtype.
    weight_spec: (name, shape, initializer) of each weight.
    example_loss_fn: `(output, label) -> [B]`, f(x; z) of each example.
    input_spec: `tf.TensorSpec`s (x, y) of a batch.
    seed: Seed of the initial weights.
    dtype: Their dtype.
    reduce_fn: From these losses to the model's loss.

  Returns:
    The model; all weights are trainable.
  """
  weights = initializers.initial_weights(weight_spec, seed, dtype)

  @tf.function
  def predict_on_batch(model_weights, x, training=True):
    del training  # No layer here behaves differently in training.
    return apply_fn(model_weights[0], x)

  def loss(
      output: tf.Tensor,
      label: tf.Tensor,
      sample_weight: Optional[tf.Tensor] = None,
  ) -> tf.Tensor:
    losses = example_loss_fn(output, label)
    if sample_weight is not None:
      losses *= tf.cast(sample_weight, losses.dtype)
    return reduce_fn(losses)

  return tff.learning.models.FunctionalModel(
      initial_weights=(weights, ()),
      predict_on_batch_fn=predict_on_batch,
      loss_fn=loss,
      input_spec=input_spec,
  )


def convolve(weights: Sequence[tf.Tensor], x: tf.Tensor) -> tf.Tensor:
  """Applies same-padded convolutions, each with bias, ReLU and 2x2 pool.

  Args:
    weights: kernel, bias, kernel, bias, ...
    x: Images [B, height, width, channels]; cast to the weights' dtype.

  Returns:
    Images of half the height and width per convolution (rounded up).
  """
  x = tf.cast(x, weights[0].dtype)
  for kernel, bias in zip(weights[0::2], weights[1::2]):
    x = tf.nn.conv2d(x, kernel, strides=1, padding='SAME')
    x = tf.nn.relu(tf.nn.bias_add(x, bias))
    x = gpu_operations.max_pool(x, size=2, stride=2)
  return x


def dense(weights: Sequence[tf.Tensor], x: tf.Tensor) -> tf.Tensor:
  """Applies x W + b to the flattened examples.

  Args:
    weights: W [D, C] and b [C].
    x: [B, ...] of D numbers each; cast to the weights' dtype.

  Returns:
    [B, C].
  """
  kernel, bias = weights
  x = tf.reshape(tf.cast(x, kernel.dtype), [-1, kernel.shape[0]])
  return tf.matmul(x, kernel) + bias


def classification_loss(output: tf.Tensor, label: tf.Tensor) -> tf.Tensor:
  """Returns the cross-entropy [B] of logits [B, C] with labels [B].

  The same value as the cross-entropy of their softmax, without its rounding.
  """
  return gpu_operations.cross_entropy(label, output)


def classification_accuracy(
    output: tf.Tensor, label: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns (1 where the largest logit is the label's, 1) for each example."""
  predicted = tf.argmax(output, axis=-1, output_type=label.dtype)
  correct = tf.cast(tf.equal(predicted, label), output.dtype)
  return correct, tf.ones_like(correct)


def penalized_loss(output: tf.Tensor, label: tf.Tensor) -> tf.Tensor:
  """Returns cross-entropy plus penalty, [B].

  A functional model's loss sees neither weights nor penalty, so the penalty
  comes with the output.

  Args:
    output: [B, C], the log-probabilities minus the penalty.
    label: Integers [B].

  Returns:
    Minus the output of the label.
  """
  # Not a column of its own: the gradient of tf.concat makes XLA take weights
  # and examples for constants, and compile anew for each batch.
  is_label = tf.one_hot(label, output.shape[-1], dtype=output.dtype)
  return -tf.reduce_sum(is_label * output, axis=1)


def sequence_loss(output: tf.Tensor, label: tf.Tensor) -> tf.Tensor:
  """Returns the mean cross-entropy [B] of logits [B, L, C], labels [B, L]."""
  losses = gpu_operations.cross_entropy(label, output)
  return tf.reduce_mean(losses, axis=1)


def sequence_accuracy(
    output: tf.Tensor, label: tf.Tensor, ignored: Sequence[int]
) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns right and all predictions [B], of labels that are not ignored.

  Args:
    output: Logits [B, L, C].
    label: Integers [B, L].
    ignored: Labels that do not count.

  Returns:
    Two vectors [B] in the dtype of the output.
  """
  counts = tf.ones_like(label, tf.bool)
  for token in ignored:
    # Not `!=`: in the graphs that TFF traces it compares Python objects.
    counts = tf.logical_and(counts, tf.not_equal(label, token))
  predicted = tf.argmax(output, axis=-1, output_type=label.dtype)
  right = tf.logical_and(counts, tf.equal(predicted, label))
  return (
      tf.reduce_sum(tf.cast(right, output.dtype), axis=1),
      tf.reduce_sum(tf.cast(counts, output.dtype), axis=1),
  )
