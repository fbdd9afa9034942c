"""Least squares on generated clients.

Client i has its own weights w_i = w + 0.3 u_i and 5 to 50 examples with
x ~ N(0, I_30), y = <w_i, x> + 0.1 noise; f(x; z) = (prediction - y)^2. Small
enough that the runtime's own costs dominate, which is what it is for:
measuring those and watching the memory of long runs.
"""

from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from baselines.tasks import clients
from baselines.tasks import models
from baselines.tasks import registry
from baselines.tasks import task

DIMENSION = 30
_CLIENT_SPREAD = 0.3
_NOISE = 0.1


def build(config: Any) -> task.Task:
  """Builds the task; see `registry.build_task`."""
  num_clients = registry.task_entry(config.task).num_clients[config.data_source]
  return task.Task(
      name=config.task,
      model_id=config.model,
      build_model=build_linear,
      train=generate(num_clients, config.data_seed),
      example_loss_fn=squared_error,
  )


def generate(num_clients: int, data_seed: int) -> clients.ClientArrays:
  """Generates the clients; x float32 [N, 30], y float32 [N, 1]."""
  generator = np.random.default_rng(data_seed)
  center = generator.standard_normal((DIMENSION, 1))
  data = []
  for size in generator.integers(5, 51, num_clients):
    weights = center + _CLIENT_SPREAD * generator.standard_normal(
        (DIMENSION, 1)
    )
    x = generator.standard_normal((size, DIMENSION))
    y = x @ weights + _NOISE * generator.standard_normal((size, 1))
    data.append((x.astype(np.float32), y.astype(np.float32)))
  return clients.from_clients(clients.client_names(num_clients), data)


def build_linear(seed: int, dtype: str) -> tff.learning.models.FunctionalModel:
  """Builds the linear model from x [B, 30] to [B, 1]; 31 parameters."""
  return models.build_functional_model(
      apply_fn=models.dense,
      weight_spec=(
          ('kernel', (DIMENSION, 1), models.glorot_uniform),
          ('bias', (1,), models.zeros),
      ),
      example_loss_fn=squared_error,
      input_spec=(
          tf.TensorSpec((None, DIMENSION), tf.float32),
          tf.TensorSpec((None, 1), tf.float32),
      ),
      seed=seed,
      dtype=dtype,
  )


def squared_error(output: tf.Tensor, label: tf.Tensor) -> tf.Tensor:
  """Returns the squared error [B] of predictions [B, 1]."""
  return tf.reduce_sum(tf.square(output - tf.cast(label, output.dtype)), axis=1)
