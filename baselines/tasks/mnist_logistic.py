"""Logistic regression on digits with an L2 penalty, as in the CEAL paper.

    f(W) = mean over the examples of the cross-entropy of softmax(x W)
           + (mu / 2) |W|_F^2,    mu = 0.5, no bias

Source `idx`: MNIST from its four files, 5,000 training images of each digit,
the first ones of the file, so that f is the same for every `data_seed`; pixels
in 0..1; d = 7840. Source `embedded`: the first 150 images of each digit of
scikit-learn's 1,797 of 8x8 pixels, the rest as test examples; d = 640. In
either, `data_seed` deals the training examples at random to 10 clients of equal
size. W starts at 0 whatever the seed.

Source: arXiv 2301.08869, section VI; the factor 1/2 is inferred.

A model's loss is the mean of what it gives for single examples, so the penalty
is part of each example's: the output is the log-probabilities minus the
penalty, and the loss is minus that of the label. Thus the losses that are
reported for any examples include it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn import datasets
import tensorflow as tf
import tensorflow_federated as tff

from baselines.tasks import clients
from baselines.tasks import idx_files
from baselines.tasks import models
from baselines.tasks import task

PENALTY = 0.5  # mu
NUM_CLIENTS = 10
NUM_CLASSES = 10
_IMAGES_PER_DIGIT = {'idx': 5000, 'embedded': 150}


def build(config: Any) -> task.Task:
  """Builds the task; see `registry.build_task`."""
  if config.data_source == 'idx':
    train, test = load_idx(config.data_dir)
  else:
    train, test = load_embedded()
  num_pixels = train[0].shape[1]
  return task.Task(
      name=config.task,
      model_id=config.model,
      build_model=lambda seed, dtype: build_logistic(seed, dtype, num_pixels),
      train=deal(train, config.data_seed),
      test=clients.from_clients(['test'], [test]),
      example_loss_fn=models.penalized_loss,
      example_accuracy_fn=models.classification_accuracy,
      objective_constants={
          'num_classes': NUM_CLASSES, 'l2_strength': PENALTY
      },
  )


def load_idx(data_dir: str) -> tuple[clients.Examples, clients.Examples]:
  """Reads MNIST from the folder with the four files.

  Returns:
    (x, y) of the 50,000 training images and of all test images; x float32
    [N, 784] in 0..1, y int32 [N].

  Raises:
    ValueError: If a file is damaged, or has too few images of a digit.
  """
  train, test = (
      _examples(*idx_files.read_split(data_dir, split), 255.0)
      for split in ('train', 'test')
  )
  rows = _first_of_each_digit(train[1], _IMAGES_PER_DIGIT['idx'])
  return (train[0][rows], train[1][rows]), test


def load_embedded() -> tuple[clients.Examples, clients.Examples]:
  """Returns the digits of scikit-learn, as `load_idx` does; x is [N, 64]."""
  digits = datasets.load_digits()
  x, y = _examples(digits.images, digits.target, 16.0)
  rows = _first_of_each_digit(y, _IMAGES_PER_DIGIT['embedded'])
  rest = np.setdiff1d(np.arange(len(y)), rows)
  return (x[rows], y[rows]), (x[rest], y[rest])


def deal(examples: clients.Examples, data_seed: int) -> clients.ClientArrays:
  """Deals (x, y), a multiple of 10 examples, to 10 clients of equal size."""
  shuffled = np.random.default_rng(data_seed).permutation(len(examples[1]))
  x, y = (feature[shuffled] for feature in examples)
  return clients.equal_parts((x, y), NUM_CLIENTS)


def build_logistic(
    seed: int, dtype: str, num_pixels: int
) -> tff.learning.models.FunctionalModel:
  """Builds the model: images [B, pixels] to log softmax(x W) - penalty."""
  return models.build_functional_model(
      apply_fn=_apply_logistic,
      weight_spec=(('kernel', (num_pixels, NUM_CLASSES), models.zeros),),
      example_loss_fn=models.penalized_loss,
      input_spec=models.labelled_spec((num_pixels,), tf.float32),
      seed=seed,
      dtype=dtype,
  )


def _apply_logistic(weights: Sequence[tf.Tensor], x: tf.Tensor) -> tf.Tensor:
  (kernel,) = weights
  logits = tf.matmul(tf.cast(x, kernel.dtype), kernel)
  penalty = PENALTY / 2.0 * tf.reduce_sum(tf.square(kernel))
  return tf.nn.log_softmax(logits) - penalty


def _examples(
    images: np.ndarray, labels: np.ndarray, white: float
) -> clients.Examples:
  x = images.reshape([len(images), -1]).astype(np.float32) / np.float32(white)
  return x, labels.astype(np.int32)


def _first_of_each_digit(labels: np.ndarray, count: int) -> np.ndarray:
  """Returns the rows, rising, of the first `count` examples of each digit."""
  rows = [np.flatnonzero(labels == k)[:count] for k in range(NUM_CLASSES)]
  fewest = min(map(len, rows))
  if fewest < count:
    raise ValueError(
        f'data_dir must hold {count} training images of each digit, found '
        f'{fewest} of one.'
    )
  return np.sort(np.concatenate(rows))
