"""The scalar quadratics of Charles and Konecny (2020), section 4.

f(x; z) = z/2 x^2 - x + y, so A_z = z and c_z = 1/z; a client holds one point z.

Model `two_clients`: z = 1 and z = 2, y = 1/(2 z), that is f = z/2 (x - 1/z)^2;
the minimizer of f is 2/3. Model `interval`: the population of Figure 1,
density 8 z/15 on [1/2, 2], y = 0; the minimizer is 5/7. Its training clients
come from a generator, new ones each round; the population loss is taken over
1,000 clients at the quantiles of the density.

The starting point is 0 whatever the seed (the paper's is not known).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from baselines.tasks import clients
from baselines.tasks import models
from baselines.tasks import task

_NUM_QUANTILES = 1000


def build(config: Any) -> task.Task:
  """Builds the task; see `registry.build_task`."""
  if config.model == 'two_clients':
    z, population = np.array([1.0, 2.0]), None
    y = 1 / (2 * z)
  else:
    z = quantile((np.arange(_NUM_QUANTILES) + 0.5) / _NUM_QUANTILES)
    y = np.zeros_like(z)
    population = clients.ClientGenerator(_generate_client)
  return task.Task(
      name=config.task,
      model_id=config.model,
      build_model=build_quadratic,
      train=clients.equal_parts((z, y), len(z)),
      example_loss_fn=quadratic_loss,
      population=population,
  )


def quantile(u: np.ndarray) -> np.ndarray:
  """Returns z with P(Z <= z) = u for the density 8 z/15 on [1/2, 2]."""
  return np.sqrt(0.25 + 3.75 * u)


def _generate_client(generator: np.random.Generator) -> clients.Examples:
  return quantile(generator.random(1)), np.zeros(1)


def build_quadratic(
    seed: int, dtype: str
) -> tff.learning.models.FunctionalModel:
  """Builds the model, whose one weight is x.

  It maps z [B] to z/2 x^2 - x [B]; labels are y [B].
  """
  points = tf.TensorSpec((None,), tf.float64)
  return models.build_functional_model(
      apply_fn=_apply_quadratic,
      weight_spec=(('x', (1,), models.zeros),),
      example_loss_fn=quadratic_loss,
      input_spec=(points, points),
      seed=seed,
      dtype=dtype,
  )


def _apply_quadratic(weights: Sequence[tf.Tensor], z: tf.Tensor) -> tf.Tensor:
  (x,) = weights
  return tf.cast(z, x.dtype) / 2 * tf.square(x) - x


def quadratic_loss(output: tf.Tensor, label: tf.Tensor) -> tf.Tensor:
  """Returns f(x; z) = output + y, [B]."""
  return output + tf.cast(label, output.dtype)
