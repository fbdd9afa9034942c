"""Minibatch-SGD: all queries of a round at one point, a rival of CEAL."""

from collections.abc import Callable
from typing import Any, Optional

import tensorflow as tf
import tensorflow_federated as tff

from baselines.algorithms import rival_round
from baselines.algorithms import rivals
from tff_localupdate.local_update import inner_loop


def build_minibatch_sgd(
    model: tff.learning.models.FunctionalModel,
    *,
    local_steps: int,
    batch_size: int,
    step_size: float,
    horizon: Optional[int] = None,
    seed: int = 0,
    dtype: Optional[str] = None,
) -> rivals.RivalProcess:
  """Builds Minibatch-SGD. In a round, with M clients,

      client m: g_m = mean of the gradients of L queries at x; sends g_m
      server:   x <- x - eta (1/M) sum_m g_m; broadcasts x

  Both messages are floats, d of them: 32 d bits in float32, 64 d in float64.
  LocalUpdate with gamma = 0, Theta = 1/L, ..., 1/L, and eta.

  Source: arXiv 2301.08869, section VI, where a step is taken every 50 queries.

  Args:
    model: The model, see `rivals.build_process`.
    local_steps: L.
    batch_size: B, the examples of a query.
    step_size: The initial eta, above 0.
    horizon: T, the queries of each client in all; None if there is no end.
    seed: A whole number; nothing is drawn here, but loops set it for all.
    dtype: The dtype of the weights, `float32` or `float64`; None takes theirs.

  Returns:
    The `rivals.RivalProcess`, over `rival_round.ClientSteps`.

  Raises:
    TypeError: If `model` is not of its type.
    ValueError: If any other argument is out of its range.
  """
  rules = rival_round.RoundRules(
      work=_mean_gradient,
      local_steps=local_steps,
      horizon=horizon,
      takes_local_steps=False,
      **rivals.float_message(),
  )
  return rivals.build_process(
      model,
      rules,
      batch_size=batch_size,
      step_size=step_size,
      seed=seed,
      dtype=dtype,
  )


def _mean_gradient(
    loss_fn: Callable[[Any, Any], tf.Tensor],
    weights: Any,
    batches: Any,
    client_learning_rate: tf.Tensor,
) -> tuple[tf.Tensor, Any]:
  """Returns the mean loss and the mean gradient of all batches at one point.

  All queries are at one point, so their examples are one batch.
  """
  del client_learning_rate  # No step is taken.
  batch = tf.nest.map_structure(
      lambda leaf: tf.reshape(leaf, [-1, *leaf.shape[2:]]), batches
  )
  return inner_loop.loss_and_gradient(loss_fn, weights, batch)
