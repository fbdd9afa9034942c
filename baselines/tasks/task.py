"""What an experiment needs of a task."""

from collections.abc import Callable, Mapping
import dataclasses
from typing import Optional, Union

import tensorflow as tf
import tensorflow_federated as tff

from baselines.tasks import clients

ExampleLossFn = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]
ExampleAccuracyFn = Callable[
    [tf.Tensor, tf.Tensor], tuple[tf.Tensor, tf.Tensor]
]
Population = Union[
    clients.ClientArrays, clients.ClientGenerator, clients.LazyClients
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
    train: The training clients; the population of f(x). A fixed sample of it,
      for evaluations, where there is a generator or `lazy`.
    test: Held-out examples, or None; of a lazy task a fixed sample.
    example_loss_fn: `(output, label) -> [B]`, f(x; z) of each example.
    example_accuracy_fn: `(output, label) -> (correct [B], weight [B])`, the
      accuracy of a data set is the sum of the former divided by the sum of the
      latter; None if the task has no accuracy.
    convolutional: Whether the model convolves (XLA is slow at that on CPUs).
    generator: Makes the clients that train, new ones each round, if the
      population is endless.
    lazy: All clients that train, read when they are drawn, if they are too many
      to be held.
    digests: SHA-256 of what the data depend on besides a database, by name;
      vocabularies for example.

  Raises:
    ValueError: If both `generator` and `lazy` are given.
  """

  name: str
  model_id: str
  build_model: Callable[[int, str], tff.learning.models.FunctionalModel]
  train: clients.ClientArrays
  test: Optional[clients.ClientArrays]
  example_loss_fn: ExampleLossFn
  example_accuracy_fn: Optional[ExampleAccuracyFn]
  convolutional: bool
  generator: Optional[clients.ClientGenerator] = None
  lazy: Optional[clients.LazyClients] = None
  digests: Mapping[str, str] = dataclasses.field(default_factory=dict)

  def __post_init__(self):
    if self.generator is not None and self.lazy is not None:
      raise ValueError(
          'generator and lazy must not both be given: training draws from one'
          ' population.'
      )

  @property
  def population(self) -> Population:
    """What the cohorts of training rounds are drawn from."""
    if self.generator is not None:
      return self.generator
    return self.train if self.lazy is None else self.lazy
