"""The linear regression of the CEAL paper, in four scalings.

10 clients hold 200 examples each, N = 2000 in all, of d = 30:

    y_i = <X_i, theta*> + N(0, 1),  |theta*| = 1,  f = (1/N) sum_i of the losses

The paper asks for |X_i| = 100 and the squared error, and says how fast each
algorithm goes; with those rates it diverges. So the model names a scaling:

| model       | X                      | loss of example i                 |
| ----------- | ---------------------- | --------------------------------- |
| `row_sum`   | rows of norm 100       | (<X_i, theta> - y_i)^2 / N        |
| `frobenius` | the matrix of norm 100 | (<X_i, theta> - y_i)^2            |
| `row`       | rows of norm 1         | (<X_i, theta> - y_i)^2            |
| `row_loss`  | rows of norm 100       | (<X_i, theta> - y_i)^2 / 100^2    |

With `row_sum` the 1/N of f stays in each query; it is the one under which the
stated rates are the best ones, or nearly so. theta starts at 0 whatever the
seed; there is no bias.

Source: arXiv 2301.08869, section VI; the scalings are inferred.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from baselines.tasks import clients
from baselines.tasks import models
from baselines.tasks import task

DIMENSION = 30
NUM_CLIENTS = 10
EXAMPLES_PER_CLIENT = 200
NUM_EXAMPLES = NUM_CLIENTS * EXAMPLES_PER_CLIENT
_NORM = 100.0
# What the squared error is multiplied by.
LOSS_FACTORS = {
    'row_sum': 1.0 / NUM_EXAMPLES,
    'frobenius': 1.0,
    'row': 1.0,
    'row_loss': 1.0 / _NORM**2,
}


def build(config: Any) -> task.Task:
  """Builds the task; the model names the scaling; see `registry.build_task`."""
  scaling = config.model
  return task.Task(
      name=config.task,
      model_id=scaling,
      build_model=lambda seed, dtype: build_linear(seed, dtype, scaling),
      train=generate(scaling, config.data_seed),
      example_loss_fn=scaled_squared_error(scaling),
      objective_constants={'loss_scale': LOSS_FACTORS[scaling]},
  )


def generate(scaling: str, data_seed: int) -> clients.ClientArrays:
  """Generates the clients; x float64 [N, 30], y float64 [N, 1].

  Scalings, the keys of `LOSS_FACTORS`, differ in nothing but the scale of X.
  """
  generator = np.random.default_rng(data_seed)
  x = generator.standard_normal((NUM_EXAMPLES, DIMENSION))
  theta = generator.standard_normal((DIMENSION, 1))
  noise = generator.standard_normal((NUM_EXAMPLES, 1))
  if scaling == 'frobenius':
    x *= _NORM / np.linalg.norm(x)
  else:
    length = 1.0 if scaling == 'row' else _NORM
    x *= length / np.linalg.norm(x, axis=1, keepdims=True)
  y = x @ (theta / np.linalg.norm(theta)) + noise
  return clients.equal_parts((x, y), NUM_CLIENTS)


def build_linear(
    seed: int, dtype: str, scaling: str
) -> tff.learning.models.FunctionalModel:
  """Builds the model from x [B, 30] to [B, 1]; its one weight is theta."""
  return models.build_functional_model(
      apply_fn=_apply_linear,
      weight_spec=(('theta', (DIMENSION, 1), models.zeros),),
      example_loss_fn=scaled_squared_error(scaling),
      input_spec=(
          tf.TensorSpec((None, DIMENSION), tf.float64),
          tf.TensorSpec((None, 1), tf.float64),
      ),
      seed=seed,
      dtype=dtype,
  )


def scaled_squared_error(
    scaling: str,
) -> Callable[[tf.Tensor, tf.Tensor], tf.Tensor]:
  """Returns the loss of examples: (output [B, 1], label [B, 1]) -> [B]."""
  factor = LOSS_FACTORS[scaling]

  def loss(output, label):
    errors = tf.square(output - tf.cast(label, output.dtype))
    return factor * tf.reduce_sum(errors, axis=1)

  return loss


def _apply_linear(weights: Sequence[tf.Tensor], x: tf.Tensor) -> tf.Tensor:
  (theta,) = weights
  return tf.matmul(tf.cast(x, theta.dtype), theta)
