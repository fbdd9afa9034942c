"""What the tasks' models are made of: initial weights, losses, metrics.

Models are `FunctionalModel`s without variables. Initial weights have Keras's
distributions (`tf.keras.initializers` of Keras 2.14) but are drawn by NumPy: a
draw depends on the generator alone, not on TensorFlow's kernels, devices or
global seeds.
"""

from collections.abc import Callable, Sequence
import numbers
from typing import Any, Optional
import zlib

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from baselines.tasks import layers
from baselines.tasks import task

Initializer = Callable[[np.random.Generator, Sequence[int]], np.ndarray]
# Name, shape and initializer of each weight.
WeightSpec = Sequence[tuple[str, Sequence[int], Initializer]]
ApplyFn = Callable[[Sequence[tf.Tensor], tf.Tensor], tf.Tensor]

# Standard deviation of a standard normal cut at two of them.
_TRUNCATED_STDDEV = 0.87962566103423978


def _fans(shape: Sequence[int]) -> tuple[float, float]:
  """Returns (fan in, fan out) of a matrix or a convolution kernel."""
  receptive_field = float(np.prod(shape[:-2]))
  return receptive_field * shape[-2], receptive_field * shape[-1]


def zeros(generator: np.random.Generator, shape: Sequence[int]) -> np.ndarray:
  """All 0."""
  del generator
  return np.zeros(shape)


def ones(generator: np.random.Generator, shape: Sequence[int]) -> np.ndarray:
  """All 1."""
  del generator
  return np.ones(shape)


def small_normal(
    generator: np.random.Generator, shape: Sequence[int]
) -> np.ndarray:
  """Normal with standard deviation 0.01."""
  return 0.01 * generator.standard_normal(shape)


def glorot_uniform(
    generator: np.random.Generator, shape: Sequence[int]
) -> np.ndarray:
  """Uniform on [-l, l], l = sqrt(6 / (fan in + fan out))."""
  limit = np.sqrt(6.0 / sum(_fans(shape)))
  return generator.uniform(-limit, limit, shape)


def he_normal(
    generator: np.random.Generator, shape: Sequence[int]
) -> np.ndarray:
  """Normal cut at two standard deviations, with variance 2 / fan in."""
  values = generator.standard_normal(shape)
  while (outside := np.abs(values) > 2).any():
    values[outside] = generator.standard_normal(outside.sum())
  return values * (np.sqrt(2.0 / _fans(shape)[0]) / _TRUNCATED_STDDEV)


def embedding_uniform(
    generator: np.random.Generator, shape: Sequence[int]
) -> np.ndarray:
  """Uniform on [-0.05, 0.05]."""
  return generator.uniform(-0.05, 0.05, shape)


def orthogonal(
    generator: np.random.Generator, shape: Sequence[int]
) -> np.ndarray:
  """Matrix whose shorter side is orthonormal, uniform among those."""
  rows, columns = shape
  q, r = np.linalg.qr(
      generator.standard_normal((max(rows, columns), min(rows, columns)))
  )
  q *= np.sign(np.diag(r))  # Makes the factorisation, and so q, unique.
  return q if rows >= columns else q.T


def unit_forget_bias(
    generator: np.random.Generator, shape: Sequence[int]
) -> np.ndarray:
  """LSTM bias [4 H] in the order i, f, c, o: 1 for the forget gate, else 0."""
  del generator
  bias = np.zeros(shape)
  units = shape[0] // 4
  bias[units : 2 * units] = 1.0
  return bias


def initial_weights(
    spec: WeightSpec, seed: int, dtype: str
) -> tuple[np.ndarray, ...]:
  """Draws a model's weights, a pure function of its arguments.

  Each weight has its own stream, named after it; float32 weights are the
  float64 ones rounded.

  Args:
    spec: (name, shape, initializer) of each weight.
    seed: Any integer.
    dtype: 'float32' or 'float64'.

  Raises:
    TypeError: If seed is not an integer.
    ValueError: If dtype is another one.
  """
  if not isinstance(seed, numbers.Integral) or isinstance(seed, bool):
    raise TypeError(f'seed must be an integer, got {seed!r}.')
  if dtype not in ('float32', 'float64'):
    raise ValueError(f"dtype must be 'float32' or 'float64', got {dtype!r}.")
  return tuple(
      initializer(
          # NumPy takes integers >= 0 only: a number and its sign.
          np.random.default_rng(
              [zlib.crc32(name.encode()), abs(int(seed)), int(seed < 0)]
          ),
          shape,
      ).astype(dtype)
      for name, shape, initializer in spec
  )


def layer_spec(
    name: str, shape: Sequence[int], kernel: Initializer = glorot_uniform
) -> list[tuple[str, Sequence[int], Initializer]]:
  """Returns kernel and bias, which starts at 0, of one layer."""
  return [
      (f'{name}/kernel', shape, kernel),
      (f'{name}/bias', shape[-1:], zeros),
  ]


def lstm_spec(
    name: str, width: int, units: int, kernel: Initializer
) -> list[tuple[str, Sequence[int], Initializer]]:
  """Returns the weights of `layers.lstm_layer` for inputs of that width."""
  return [
      (f'{name}/kernel', (width, 4 * units), kernel),
      (f'{name}/recurrent_kernel', (units, 4 * units), orthogonal),
      (f'{name}/bias', (4 * units,), unit_forget_bias),
  ]


def labelled_spec(
    shape: Sequence[int], dtype: tf.DType
) -> tuple[tf.TensorSpec, tf.TensorSpec]:
  """Returns the spec of batches of examples with one class each."""
  return tf.TensorSpec((None, *shape), dtype), tf.TensorSpec((None,), tf.int32)


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
    weight_spec: As for `initial_weights`.
    example_loss_fn: `(output, label) -> [B]`, f(x; z) of each example.
    input_spec: `tf.TensorSpec`s (x, y) of a batch.
    seed: Seed of the initial weights, all of them trainable.
    dtype: Their dtype.
    reduce_fn: From these losses to the model's loss.
  """
  weights = initial_weights(weight_spec, seed, dtype)

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

  `weights` are kernel, bias, kernel, bias, ...; images [B, height, width,
  channels] are cast to their dtype, and halved (rounded up) each time.
  """
  x = tf.cast(x, weights[0].dtype)
  for kernel, bias in zip(weights[0::2], weights[1::2]):
    x = tf.nn.conv2d(x, kernel, strides=1, padding='SAME')
    x = tf.nn.relu(tf.nn.bias_add(x, bias))
    x = layers.max_pool(x, size=2, stride=2)
  return x


def dense(weights: Sequence[tf.Tensor], x: tf.Tensor) -> tf.Tensor:
  """Applies x W + b to the flattened examples.

  `weights` are W [D, C] and b [C]; x, [B, ...] of D numbers each, is cast to
  their dtype; the result is [B, C].
  """
  kernel, bias = weights
  x = tf.reshape(tf.cast(x, kernel.dtype), [-1, kernel.shape[0]])
  return tf.matmul(x, kernel) + bias


def classification_loss(output: tf.Tensor, label: tf.Tensor) -> tf.Tensor:
  """Returns the cross-entropy [B] of logits [B, C] with labels [B].

  The same value as the cross-entropy of their softmax, without its rounding.
  """
  return layers.cross_entropy(label, output)


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
  comes with the output [B, C], the log-probabilities minus the penalty; the
  loss is minus the output of the label.
  """
  # Not a column of its own: the gradient of tf.concat makes XLA take weights
  # and examples for constants, and compile anew for each batch.
  is_label = tf.one_hot(label, output.shape[-1], dtype=output.dtype)
  return -tf.reduce_sum(is_label * output, axis=1)


def sequence_loss(output: tf.Tensor, label: tf.Tensor) -> tf.Tensor:
  """Returns the mean cross-entropy [B] of logits [B, L, C], labels [B, L]."""
  losses = layers.cross_entropy(label, output)
  return tf.reduce_mean(losses, axis=1)


def sequence_accuracy(
    output: tf.Tensor, label: tf.Tensor, ignored: Sequence[int]
) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns right and all predictions [B], of labels that are not ignored.

  Takes logits [B, L, C], labels [B, L] and the labels that do not count.
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
