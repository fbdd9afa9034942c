"""What an experiment needs of a task."""

from collections.abc import Callable, Mapping
import dataclasses
import functools
import hashlib
from typing import Optional

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from baselines.tasks import clients

# From the seed of the initial weights and their dtype to a model; see
# `Task.build_model`.
ModelBuilder = Callable[[int, str], tff.learning.models.FunctionalModel]
ExampleLossFn = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]
ExampleAccuracyFn = Callable[
    [tf.Tensor, tf.Tensor], tuple[tf.Tensor, tf.Tensor]
]


@dataclasses.dataclass(frozen=True)
class Task:
  """Clients' data, and a model with its losses.

  Attributes:
    name: The key of `registry.TASKS`.
    model_id: The model's name, one of the entry's `models`.
    build_model: `(seed, dtype) -> model`; the initial weights are a pure
      function of the integer seed and the dtype ('float32' or 'float64').
      `model.loss(output, label)` is the mean of `example_loss_fn` over the
      batch; its gradient is that of the mean too, unless the model says
      otherwise. The input spec does not depend on the dtype: it is that of the
      data, and the model casts.
    train: The training clients that are evaluated: the population of f(x), or a
      fixed sample of it.
    test: Held-out examples, or a fixed sample of them, or None.
    example_loss_fn: `(output, label) -> [B]`, f(x; z) of each example.
    example_accuracy_fn: `(output, label) -> (correct [B], weight [B])`, the
      accuracy of a data set is the sum of the former divided by the sum of the
      latter; None if the task has no accuracy.
    convolutional: Whether the model convolves (XLA is slow at that on CPUs).
    population: What the cohorts of training rounds are drawn from: all training
      clients; by default `train`.
    build_plain_model: As `build_model`, of TensorFlow's own operations and the
      gradients that it derives; by default `build_model`.
    digests: SHA-256 of what the data depend on besides a database, by name;
      vocabularies for example.
    objective_constants: What f's formula needs besides the training examples,
      if f is known as one, see `registry.TaskEntry.objective`.
  """

  name: str
  model_id: str
  build_model: ModelBuilder
  train: clients.ClientArrays
  example_loss_fn: ExampleLossFn
  test: Optional[clients.ClientArrays] = None
  example_accuracy_fn: Optional[ExampleAccuracyFn] = None
  convolutional: bool = False
  population: Optional[clients.Population] = None
  build_plain_model: Optional[ModelBuilder] = None
  digests: Mapping[str, str] = dataclasses.field(default_factory=dict)
  objective_constants: Mapping[str, float] = dataclasses.field(
      default_factory=dict
  )

  def __post_init__(self):
    if self.population is None:
      object.__setattr__(self, 'population', self.train)

  @functools.cached_property
  def data_digests(self) -> Mapping[str, str]:
    """Digests that tell whether the data are the same, by name.

    Besides `digests` that of the clients: their names, how many examples each
    has, and the classes of the examples that are evaluated. Not numbers: those
    that are computed may differ in the last bit on another machine.
    """
    digest = hashlib.sha256()
    for held in (self.population, self.train, self.test):
      if held is not None and held.num_clients is not None:
        digest.update(repr(held.client_ids).encode())
        digest.update(np.ascontiguousarray(held.sizes))
    for held in (self.train, self.test):
      if held is not None and held.features[1].dtype.kind in 'iu':
        digest.update(np.ascontiguousarray(held.features[1]))
    return {**self.digests, 'clients': digest.hexdigest()}

  def model_builder(self, fast: bool = True) -> ModelBuilder:
    """Returns `build_model` or, if not fast, `build_plain_model`."""
    return (not fast and self.build_plain_model) or self.build_model
