"""Losses and accuracy of a model over the whole population.

f(x) = E_i E_z f(x; z) is the plain mean over clients of per-client means (the
paper's equation 2 with P uniform over the training clients), not the mean over
all examples; both are reported.
"""

from collections.abc import Callable
from concurrent import futures
import copy
import os
from typing import Any, NamedTuple, Optional

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from baselines.tasks import clients
from baselines.tasks import task as task_lib

# Fewer examples at a time make matrix products slow.
_SMALLEST_BATCH = 32
_BATCH = 256
# The call of a batch takes as long as 2,000 examples of a model of so few
# weights, unless it convolves.
_FEW_WEIGHTS, _BATCH_OF_FEW_WEIGHTS = 10_000, 4096


class Evaluation(NamedTuple):
  """What an evaluation gives; None where the task has no such value.

  See `baselines.results.records`. In the accuracy, each test example has the
  weight that the task's metric gives it.
  """

  population_loss: float
  example_weighted_loss: float
  test_loss: Optional[float]
  test_accuracy: Optional[float]


class Evaluator:
  """Evaluates weights of one model on one task.

  One compiled function runs over batches of one size, the last one padded;
  sums are taken in float64. Memory grows with the data only by the losses, a
  few numbers per example. Where operations have one thread each (see
  `execution.configure`), batches share the cores; that changes no number.
  """

  def __init__(
      self,
      task: task_lib.Task,
      model: tff.learning.models.FunctionalModel,
      *,
      batch_size: Optional[int] = None,
      jit: Optional[bool] = None,
      device: str = '/device:CPU:0',
  ):
    """Initializes the evaluator.

    Args:
      task: The task; must have a training example, else ValueError is raised.
      model: Of `task.build_model`.
      batch_size: Examples that are evaluated at once, by all threads together
        if a thread then still has 32 of them. None is 256, or 4096 for a model
        of at most 10,000 weights that does not convolve.
      jit: Whether to compile with XLA; None decides: where recurrent steps are
        many small kernels, that is on a GPU unless the model convolves.
      device: Where to compute, such as '/device:GPU:0'.
    """
    if batch_size is None:
      few = not task.convolutional and _count_weights(model) <= _FEW_WEIGHTS
      batch_size = _BATCH_OF_FEW_WEIGHTS if few else _BATCH
    if batch_size < 1:
      raise ValueError(f'batch_size must be at least 1, got {batch_size}.')
    if jit is None:
      jit = 'GPU' in device and not task.convolutional
    self._device = device
    self._task = _checked(task)
    self._threads = _count_threads(device)
    self._batch_size = min(
        batch_size, max(batch_size // self._threads, _SMALLEST_BATCH)
    )
    self._evaluate_batch = _build_evaluate_batch(task, model, jit)

  def with_data_of(self, task: task_lib.Task) -> 'Evaluator':
    """Returns an evaluator that recompiles nothing, on another task's data.

    The task differs from this evaluator's own in clients and examples alone.
    """
    other = copy.copy(self)
    other._task = _checked(task)
    return other

  def evaluate(self, weights: Any) -> Evaluation:
    """Evaluates `ModelWeights`, or a pair of trainable and other weights."""
    trainable, non_trainable = (
        (weights.trainable, weights.non_trainable)
        if hasattr(weights, 'trainable')
        else weights
    )
    # Tensors once, not once per batch.
    with tf.device(self._device):
      weights = tf.nest.map_structure(
          tf.convert_to_tensor, (tuple(trainable), tuple(non_trainable))
      )
    train, test = self._task.train, self._task.test
    train_losses = self._evaluate_examples(weights, train)[0]
    test_loss, test_accuracy = None, None
    if test is not None:
      test_losses, *accuracy = self._evaluate_examples(weights, test)
      test_loss = float(np.mean(test_losses))
      if accuracy:
        correct, weight = accuracy
        test_accuracy = float(np.sum(correct) / np.sum(weight))
    return Evaluation(
        population_loss=client_uniform_mean(train_losses, train.offsets),
        example_weighted_loss=float(np.mean(train_losses)),
        test_loss=test_loss,
        test_accuracy=test_accuracy,
    )

  def _evaluate_examples(
      self, weights: Any, arrays: clients.ClientArrays
  ) -> np.ndarray:
    """Returns float64 [1 or 3, N]: loss (, correct, weight) per example."""
    num_examples, size = len(arrays.features[0]), self._batch_size

    def evaluate_from(start):
      batch = (
          _pad(feature[start : start + size], size)
          for feature in arrays.features
      )
      with tf.device(self._device):  # Each thread has its own.
        return self._evaluate_batch(weights, *batch)

    starts = range(0, num_examples, size)
    if self._threads == 1:
      results = [evaluate_from(start) for start in starts]
    else:
      with futures.ThreadPoolExecutor(self._threads) as pool:
        results = list(pool.map(evaluate_from, starts))
    # Fetched at the end: an accelerator computes on while batches are queued.
    values = np.concatenate([r.numpy() for r in results], axis=1)
    return values[:, :num_examples].astype(np.float64)


def client_uniform_mean(losses: np.ndarray, offsets: np.ndarray) -> float:
  """Returns the mean over non-empty clients of their mean losses.

  Client i has `losses[offsets[i]:offsets[i + 1]]`. NaN if there is no example.
  """
  sizes = np.diff(offsets)
  owner = np.repeat(np.arange(len(sizes)), sizes)
  sums = np.bincount(owner, weights=losses, minlength=len(sizes))
  return float(np.mean(sums[sizes > 0] / sizes[sizes > 0]))


def _checked(task: task_lib.Task) -> task_lib.Task:
  """Returns the task if it has a training example."""
  if not task.train.sizes.any():
    raise ValueError('task.train must hold at least one example, got none.')
  return task


def _count_weights(model: tff.learning.models.FunctionalModel) -> int:
  return sum(np.size(w) for w in tf.nest.flatten(model.initial_weights))


def _count_threads(device: str) -> int:
  """Returns how many batches to evaluate at a time."""
  threads = tf.config.threading.get_intra_op_parallelism_threads()
  if 'GPU' in device or threads != 1:
    return 1
  return len(os.sched_getaffinity(0))


def _pad(feature: np.ndarray, size: int) -> np.ndarray:
  """Pads a batch to the size with copies of its first example."""
  missing = size - len(feature)
  if not missing:
    return feature
  return np.concatenate([feature, np.repeat(feature[:1], missing, axis=0)])


def _build_evaluate_batch(
    task: task_lib.Task,
    model: tff.learning.models.FunctionalModel,
    jit: bool,
) -> Callable[..., tf.Tensor]:
  """Compiles the evaluation of one batch."""

  # jit_compile=False would forbid XLA to an outer function; None only does
  # not ask for it.
  @tf.function(jit_compile=jit or None)
  def evaluate_batch(weights, x, y):
    output = model.predict_on_batch(weights, x, training=False)
    values = [task.example_loss_fn(output, y)]
    if task.example_accuracy_fn is not None:
      values.extend(task.example_accuracy_fn(output, y))
    return tf.stack(values)

  return evaluate_batch
