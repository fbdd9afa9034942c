"""CIFAR-100 dealt to clients by Pachinko allocation, as TFF's baseline task.

The network is ResNet-18 with group normalization. A 7x7 convolution (64) and a
3x3 pool, both with stride 2; eight blocks of two 3x3 convolutions (2 x 64, 2 x
128, 2 x 256, 2 x 512), all with stride 1, each convolution after normalization
and ReLU (the first of all has none of its own); a 1x1 convolution with
normalization where a shortcut changes width; mean over the pixels; a dense
layer. 11,227,812 parameters for 100 classes.

Sources: `tff.simulation.baselines.cifar100` 0.87.0, model `resnet18`; He et al.
(https://arxiv.org/abs/1603.05027), with the normalization of Wu and He
(https://arxiv.org/abs/1803.08494): 32 groups, epsilon 0.001.

Images are cropped to their middle 24x24 pixels and standardized one by one.
The loss of an example is

    f(x; z) = cross-entropy + 1e-4 |x'|^2

with x' the kernels and the last bias, in training and in evaluation, as TFF's
model has it; the model `resnet18_unpenalized` leaves the second term out.

Departures: the output is log-probabilities (minus the penalty, see
`models.penalized_loss`) where TFF's model ends with a softmax; the loss is the
same number. Clients hold bytes that the model standardizes, a quarter of the
memory. The random crops and flips that TFF offers for training are not there:
by default it makes none.
"""

from collections.abc import Iterator, Sequence
import functools
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from baselines.tasks import databases
from baselines.tasks import layers
from baselines.tasks import models
from baselines.tasks import task
from baselines.tasks import tff_sources

_GROUPS = 32
_EPSILON = 1e-3
_STEM_WIDTH = 64
# Channels (in, out) of each block.
_BLOCKS = (
    (64, 64), (64, 64), (64, 128), (128, 128),
    (128, 256), (256, 256), (256, 512), (512, 512),
)


def weight_spec(num_classes: int) -> models.WeightSpec:
  """Returns name, shape and initializer of each weight, in Keras's order."""
  spec = _convolution('stem', 7, 3, _STEM_WIDTH) + _norm('stem', _STEM_WIDTH)
  for i, (inputs, outputs) in enumerate(_BLOCKS):
    name = f'block{i + 1}'
    if i > 0:
      spec += _norm(f'{name}/1', inputs)
    spec += _convolution(f'{name}/1', 3, inputs, outputs)
    spec += _norm(f'{name}/2', outputs)
    if inputs != outputs:
      spec += _convolution(f'{name}/shortcut', 1, inputs, outputs)
      spec += _norm(f'{name}/shortcut', outputs)
    spec += _convolution(f'{name}/2', 3, outputs, outputs)
  width = _BLOCKS[-1][1]
  return spec + _norm('last', width) + models.layer_spec(
      'dense', (width, num_classes), models.small_normal
  )


def _convolution(name, size, inputs, outputs) -> models.WeightSpec:
  shape = (size, size, inputs, outputs)
  return [(f'{name}/kernel', shape, models.he_normal)]


def _norm(name: str, width: int) -> models.WeightSpec:
  return [
      (f'{name}/scale', (width,), models.ones),
      (f'{name}/offset', (width,), models.zeros),
  ]


def logits(weights: Sequence[tf.Tensor], x: tf.Tensor) -> tf.Tensor:
  """Applies the network of `weight_spec` to [B, height, width, 3]."""
  *weights, kernel, bias = weights
  # Taken one after another, in the order of `weight_spec`.
  rest = iter(weights)
  x = tf.nn.conv2d(x, next(rest), strides=2, padding='SAME')
  x = tf.nn.relu(_normalize(x, rest))
  x = layers.max_pool(x, size=3, stride=2)
  for i, (inputs, outputs) in enumerate(_BLOCKS):
    residual = x if i == 0 else tf.nn.relu(_normalize(x, rest))
    residual = _convolve(residual, rest)
    residual = tf.nn.relu(_normalize(residual, rest))
    if inputs != outputs:
      x = _normalize(_convolve(x, rest), rest)
    x += _convolve(residual, rest)
  x = tf.reduce_mean(tf.nn.relu(_normalize(x, rest)), axis=[1, 2])
  return models.dense((kernel, bias), x)


def sum_of_squares(weights: Sequence[tf.Tensor]) -> tf.Tensor:
  """Sums the squares of what TFF penalizes: kernels and the last bias."""
  penalized = [w for w in weights if w.shape.rank > 1] + [weights[-1]]
  return 2.0 * tf.add_n([tf.nn.l2_loss(w) for w in penalized])


def standardize(images: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
  """Returns images with mean 0 and standard deviation 1 each.

  The same as `tf.image.per_image_standardization`, in any dtype: a standard
  deviation below 1 / sqrt(height x width x channels) is taken for that.
  """
  x = tf.cast(images, dtype)
  mean, variance = tf.nn.moments(x, axes=[1, 2, 3], keepdims=True)
  least = 1.0 / np.sqrt(np.prod(x.shape[1:]))
  return (x - mean) / tf.maximum(tf.sqrt(variance), least)


def _convolve(x: tf.Tensor, weights: Iterator[tf.Tensor]) -> tf.Tensor:
  return tf.nn.conv2d(x, next(weights), strides=1, padding='SAME')


def _normalize(x: tf.Tensor, weights: Iterator[tf.Tensor]) -> tf.Tensor:
  """Normalizes over pixels and the channels of a group, [B, h, w, C]."""
  scale, offset = next(weights), next(weights)
  # Pixels first, then groups: a reduction over both needs a tensor of rank 5
  # and takes twice the time on a CPU.
  x -= _group_mean(tf.reduce_mean(x, axis=[1, 2]))
  variance = _group_mean(tf.reduce_mean(tf.square(x), axis=[1, 2]))
  return x * (scale * tf.math.rsqrt(variance + _EPSILON)) + offset


def _group_mean(x: tf.Tensor) -> tf.Tensor:
  """Returns for each channel, [B, C], its group's mean, [B, 1, 1, C]."""
  members = x.shape[1] // _GROUPS
  means = tf.reduce_mean(tf.reshape(x, [-1, _GROUPS, members]), axis=2)
  return tf.repeat(means, members, axis=1)[:, tf.newaxis, tf.newaxis]


NUM_CLASSES = 100
PENALTY = 1e-4

_STORED_SHAPE = (32, 32, 3)
_IMAGE_SHAPE = (24, 24, 3)
_PENALTIES = {'resnet18': PENALTY, 'resnet18_unpenalized': 0.0}


def build(config: Any) -> task.Task:
  """Builds the task; see `registry.build_task`."""
  train, test = tff_sources.load_images(
      databases.CIFAR100,
      config,
      tff.simulation.datasets.cifar100,
      image=('image', tf.io.FixedLenFeature(_STORED_SHAPE, tf.int64)),
      shape=_IMAGE_SHAPE,
      dtype=np.uint8,
      convert=_crop,
  )
  return task.Task(
      name=config.task,
      model_id=config.model,
      build_model=functools.partial(build_resnet, _PENALTIES[config.model]),
      train=train,
      test=test,
      example_loss_fn=models.penalized_loss,
      example_accuracy_fn=models.classification_accuracy,
      convolutional=True,
  )


def build_resnet(
    penalty: float, seed: int, dtype: str
) -> tff.learning.models.FunctionalModel:
  """Builds the network; see `task.ModelBuilder`.

  It maps images [B, 24, 24, 3] uint8 to [B, 100], log-probabilities minus
  `penalty` times the sum of squares; labels are int32 [B].
  """
  return models.build_functional_model(
      apply_fn=functools.partial(_apply_resnet, penalty),
      weight_spec=weight_spec(NUM_CLASSES),
      example_loss_fn=models.penalized_loss,
      input_spec=models.labelled_spec(_IMAGE_SHAPE, tf.uint8),
      seed=seed,
      dtype=dtype,
  )


def _apply_resnet(
    penalty: float, weights: Sequence[tf.Tensor], x: tf.Tensor
) -> tf.Tensor:
  weights = [tf.convert_to_tensor(w) for w in weights]
  x = standardize(x, weights[0].dtype)
  output = tf.nn.log_softmax(logits(weights, x))
  if penalty:
    output -= penalty * sum_of_squares(weights)
  return output


def _crop(images: np.ndarray) -> np.ndarray:
  """Returns the middle 24x24 pixels."""
  margin = (_STORED_SHAPE[0] - _IMAGE_SHAPE[0]) // 2
  return images[:, margin:-margin, margin:-margin]
