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
from baselines.tasks import registry
from baselines.tasks import task

_TEST_SHARE = 0.15
_IMAGE_SHAPE = (8, 8, 1)
_NUM_CLASSES = 10
_INPUT_SPEC = models.labelled_spec(_IMAGE_SHAPE, tf.float32)


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
  """Loads and deals the digits; `data_seed` is that of hold-out and deal.

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
  deal = dirichlet_partition(y[train_rows], num_clients, data_seed)
  rows = [train_rows[positions] for positions in deal]
  train = clients.from_clients(
      clients.client_names(num_clients), [(x[r], y[r]) for r in rows]
  )
  return train, clients.from_clients(['test'], [(x[test_rows], y[test_rows])])


def dirichlet_partition(
    labels: np.ndarray,
    num_clients: int,
    seed: int,
    *,
    label_concentration: float = 0.5,
    size_concentration: float = 2.0,
) -> list[np.ndarray]:
  """Deals every example to exactly one client; none stays empty.

  Each client gets a share of the data (symmetric Dirichlet over clients) and a
  mixture of labels (symmetric Dirichlet over labels); an example of label k
  goes to client i with probability proportional to share_i * mixture_i[k].
  Clients that got nothing then take one example each from the largest.

  Args:
    labels: The labels, [N].
    num_clients: Number of clients, 1 to N.
    seed: Seed of the deal, at least 0.
    label_concentration: Small values give each client few labels.
    size_concentration: Small values give very unequal clients.

  Returns:
    For each client the positions of its examples, rising.

  Raises:
    ValueError: If num_clients is out of range.
  """
  if not 1 <= num_clients <= len(labels):
    raise ValueError(
        f'num_clients must be 1 to {len(labels)}, the number of examples, got'
        f' {num_clients}.'
    )
  generator = np.random.default_rng(seed)
  classes, label_index = np.unique(labels, return_inverse=True)
  shares = generator.dirichlet([size_concentration] * num_clients)
  mixtures = generator.dirichlet(
      [label_concentration] * len(classes), size=num_clients
  )
  # The smallest positive number keeps a label that no mixture has dealable.
  weights = shares[:, np.newaxis] * mixtures + np.finfo(np.float64).tiny
  owner = np.empty(len(labels), np.int64)
  for k in range(len(classes)):
    rows = np.flatnonzero(label_index == k)
    probabilities = weights[:, k] / weights[:, k].sum()
    owner[rows] = generator.choice(num_clients, len(rows), p=probabilities)
  _fill_empty(owner, num_clients)
  return [np.flatnonzero(owner == i) for i in range(num_clients)]


def _fill_empty(owner: np.ndarray, num_clients: int) -> None:
  """Gives each empty client the last example of the largest client."""
  counts = np.bincount(owner, minlength=num_clients)
  for i in np.flatnonzero(counts == 0):
    largest = int(np.argmax(counts))
    owner[np.flatnonzero(owner == largest)[-1]] = i
    counts[largest] -= 1
    counts[i] += 1


def build_cnn(seed: int, dtype: str) -> tff.learning.models.FunctionalModel:
  """Builds the small network: two 3x3 convolutions (16, 32) with pools, dense.

  It maps images [B, 8, 8, 1] to logits [B, 10]; 6,090 parameters.
  """
  return models.build_functional_model(
      apply_fn=_apply_cnn,
      weight_spec=(
          *models.layer_spec('conv1', (3, 3, 1, 16)),
          *models.layer_spec('conv2', (3, 3, 16, 32)),
          *models.layer_spec('dense', (2 * 2 * 32, _NUM_CLASSES)),
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
  """Builds multinomial logistic regression on the pixels; 650 parameters."""
  return models.build_functional_model(
      apply_fn=models.dense,
      weight_spec=models.layer_spec('dense', (64, _NUM_CLASSES)),
      example_loss_fn=models.classification_loss,
      input_spec=_INPUT_SPEC,
      seed=seed,
      dtype=dtype,
  )
