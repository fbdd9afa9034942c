"""Real handwritten digits without a download.

The 1,797 images of 8x8 pixels that scikit-learn ships (UCI Optical Recognition
of Handwritten Digits, test set). A seeded 15 % are held out as test examples;
the rest is dealt to 100 clients of unequal size with label skew. The deal is a
function of `data_seed` alone.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn import datasets
import tensorflow as tf
import tensorflow_federated as tff

from baselines.tasks import clients
from baselines.tasks import models
from baselines.tasks import partition
from baselines.tasks import registry
from baselines.tasks import task

_TEST_SHARE = 0.15
_IMAGE_SHAPE = (8, 8, 1)
_NUM_CLASSES = 10
_INPUT_SPEC = (
    tf.TensorSpec((None, *_IMAGE_SHAPE), tf.float32),
    tf.TensorSpec((None,), tf.int32),
)


def build(config: Any) -> task.Task:
  """Builds the task; see `registry.build_task`."""
  num_clients = registry.task_entry(config.task).num_clients[config.data_source]
  train, test = load(num_clients, config.data_seed)
  builders = {'cnn': build_cnn, 'logistic': build_logistic}
  return task.Task(
      name=config.task,
      model_id=config.model,
      build_model=builders[config.model],
      train=train,
      test=test,
      example_loss_fn=models.classification_loss,
      example_accuracy_fn=models.classification_accuracy,
      convolutional=config.model == 'cnn',
  )


def load(
    num_clients: int, data_seed: int
) -> tuple[clients.ClientArrays, clients.ClientArrays]:
  """Loads and deals the digits.

  Args:
    num_clients: Training clients, 1 to 1,528.
    data_seed: Seed of the hold-out and the deal, at least 0.

  Returns:
    The training clients and one client with the held-out examples; x float32
    [N, 8, 8, 1] in 0..1, y int32 [N].

  Raises:
    ValueError: If num_clients is out of range.
  """
  digits = datasets.load_digits()
  x = (digits.images[..., np.newaxis] / 16.0).astype(np.float32)
  y = digits.target.astype(np.int32)
  shuffled = np.random.default_rng(data_seed).permutation(len(y))
  num_test = int(_TEST_SHARE * len(y))
  test_rows, train_rows = shuffled[:num_test], np.sort(shuffled[num_test:])
  deal = partition.dirichlet_partition(y[train_rows], num_clients, data_seed)
  rows = [train_rows[positions] for positions in deal]
  train = clients.from_clients(
      [f'client_{i:04d}' for i in range(num_clients)],
      [(x[r], y[r]) for r in rows],
  )
  return train, clients.from_clients(['test'], [(x[test_rows], y[test_rows])])


def build_cnn(seed: int, dtype: str) -> tff.learning.models.FunctionalModel:
  """Builds the small network: two 3x3 convolutions (16, 32) with pools, dense.

  Args:
    seed: Seed of the initial weights.
    dtype: Their dtype.

  Returns:
    A model from images [B, 8, 8, 1] to logits [B, 10]; 6,090 parameters.
  """
  glorot, zeros = models.glorot_uniform, models.zeros
  return models.build_functional_model(
      apply_fn=_apply_cnn,
      weight_spec=(
          ('conv1/kernel', (3, 3, 1, 16), glorot),
          ('conv1/bias', (16,), zeros),
          ('conv2/kernel', (3, 3, 16, 32), glorot),
          ('conv2/bias', (32,), zeros),
          ('dense/kernel', (2 * 2 * 32, _NUM_CLASSES), glorot),
          ('dense/bias', (_NUM_CLASSES,), zeros),
      ),
      example_loss_fn=models.classification_loss,
      input_spec=_INPUT_SPEC,
      seed=seed,
      dtype=dtype,
  )


def _apply_cnn(weights: Sequence[tf.Tensor], x: tf.Tensor) -> tf.Tensor:
  x = models.convolve(weights[0:4], x)
  return models.dense(weights[4:6], x)


def build_logistic(
    seed: int, dtype: str
) -> tff.learning.models.FunctionalModel:
  """Builds multinomial logistic regression on the pixels.

  Args:
    seed: Seed of the initial weights.
    dtype: Their dtype.

  Returns:
    A model from images [B, 8, 8, 1] to logits [B, 10]; 650 parameters.
  """
  return models.build_functional_model(
      apply_fn=models.dense,
      weight_spec=(
          ('dense/kernel', (64, _NUM_CLASSES), models.glorot_uniform),
          ('dense/bias', (_NUM_CLASSES,), models.zeros),
      ),
      example_loss_fn=models.classification_loss,
      input_spec=_INPUT_SPEC,
      seed=seed,
      dtype=dtype,
  )
