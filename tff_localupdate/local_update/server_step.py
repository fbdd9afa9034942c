"""The server's side of LocalUpdate: its state, its metrics, its step."""

import collections
from typing import Any, NamedTuple

import tensorflow as tf
import tensorflow_federated as tff

from tff_localupdate import arguments
from tff_localupdate.local_update import client_work

_LEARNING_RATE = tff.learning.optimizers.LEARNING_RATE_KEY


class LocalUpdateState(NamedTuple):
  """What the server keeps between rounds.

  Attributes:
    model_weights: x_t, a `tff.learning.models.ModelWeights`.
    optimizer: The server optimizer's state; it holds the rate eta_t.
    aggregator: The aggregation process's state.
    client_learning_rate: gamma_t, a scalar in the dtype of the weights.
    round_num: int64, the number of rounds done.
  """

  model_weights: Any
  optimizer: Any
  aggregator: Any
  client_learning_rate: Any
  round_num: Any


class LocalUpdateMetrics(NamedTuple):
  """What is reported of round t; scalars, in the dtype of the weights.

  Attributes:
    loss_before_training: The mean, with equal weights, of the losses of the
      non-empty clients at x_t. NaN if all clients are empty: `clients_used`,
      then 0, tells this from the NaN of a diverged run.
    update_norm: The L2 norm of q_t, the update handed to the server optimizer;
      0 if all clients are empty.
    client_learning_rate: gamma_t.
    server_learning_rate: eta_t.
    clients_used: int32, the number of clients that have examples.
    clients_empty: int32, the number of clients that have none.
    clients_non_finite: int32, the number of clients whose update is not finite.
    examples_used: int64, the examples drawn by all clients, with repetitions.
    aggregator: The aggregation's measurements; empty for the default one.
  """

  loss_before_training: Any
  update_norm: Any
  client_learning_rate: Any
  server_learning_rate: Any
  clients_used: Any
  clients_empty: Any
  clients_non_finite: Any
  examples_used: Any
  aggregator: Any


def server_step(
    server_optimizer: tff.learning.optimizers.Optimizer,
    state: LocalUpdateState,
    mean_update: Any,
    totals: client_work.ClientTotals,
    aggregator_state: Any,
    aggregator_measurements: Any,
) -> tuple[LocalUpdateState, LocalUpdateMetrics]:
  """Applies one round's update: x_{t+1} = ServerOpt(x_t, q_t, eta_t).

  With M clients of which m are not empty, q_t = (M/m) `mean_update`: the mean
  over the clients that have examples. The factor is exactly 1 if none is empty.
  If all are, weights and optimizer keep their state, bit for bit; that of the
  aggregator goes on, as it may have spent randomness or privacy. An update that
  is not finite is applied like any other.

  `mean_update` is over all M clients, empty ones sending 0; `totals` are the
  clients' sums; `aggregator_state` is the one after the round.
  """
  gamma = state.client_learning_rate
  num_used = tf.cast(totals.clients_used, gamma.dtype)
  num_clients = tf.cast(totals.clients_used + totals.clients_empty, gamma.dtype)
  any_used = totals.clients_used > 0
  scale = tf.math.divide_no_nan(num_clients, num_used)
  update = tf.nest.map_structure(lambda leaf: scale * leaf, mean_update)
  weights = state.model_weights
  new_optimizer, new_trainable = server_optimizer.next(
      state.optimizer, weights.trainable, update
  )
  new_optimizer, new_trainable = tf.nest.map_structure(
      lambda new, old: tf.where(any_used, new, old),
      (new_optimizer, new_trainable),
      (state.optimizer, weights.trainable),
  )
  new_state = LocalUpdateState(
      model_weights=tff.learning.models.ModelWeights(
          new_trainable, weights.non_trainable
      ),
      optimizer=new_optimizer,
      aggregator=aggregator_state,
      client_learning_rate=gamma,
      round_num=state.round_num + 1,
  )
  eta = get_hparams(server_optimizer, state)['server_learning_rate']
  norm = tf.linalg.global_norm(tf.nest.flatten(update))
  metrics = LocalUpdateMetrics(
      loss_before_training=totals.loss / num_used,
      update_norm=tf.where(any_used, norm, tf.zeros_like(norm)),
      client_learning_rate=gamma,
      server_learning_rate=tf.cast(eta, gamma.dtype),
      clients_used=totals.clients_used,
      clients_empty=totals.clients_empty,
      clients_non_finite=totals.clients_non_finite,
      examples_used=totals.examples_used,
      aggregator=aggregator_measurements,
  )
  return new_state, metrics


def check_has_rate(
    server_optimizer: tff.learning.optimizers.Optimizer, optimizer_state: Any
) -> None:
  """Raises ValueError unless the optimizer keeps its rate in its state."""
  names = tuple(server_optimizer.get_hparams(optimizer_state))
  if _LEARNING_RATE not in names:
    raise ValueError(
        'server_optimizer must keep its rate in its state, under the name '
        f'{_LEARNING_RATE}, found hyperparameters {names}.'
    )


def get_hparams(
    server_optimizer: tff.learning.optimizers.Optimizer,
    state: LocalUpdateState,
) -> collections.OrderedDict[str, Any]:
  """Returns the two learning rates in `state`, by name."""
  optimizer_hparams = server_optimizer.get_hparams(state.optimizer)
  return collections.OrderedDict(
      client_learning_rate=state.client_learning_rate,
      server_learning_rate=optimizer_hparams[_LEARNING_RATE],
  )


def set_hparams(
    server_optimizer: tff.learning.optimizers.Optimizer,
    state: LocalUpdateState,
    hparams: collections.OrderedDict[str, Any],
) -> LocalUpdateState:
  """Returns `state` with other learning rates, in the dtypes of the old ones.

  `hparams` has `client_learning_rate`, `server_learning_rate` or both, numbers
  or scalar tensors. Raises ValueError for any other name, and for a rate that
  is negative or not finite (a symbolic tensor is not checked).
  """
  rates = get_hparams(server_optimizer, state)
  for name, value in hparams.items():
    arguments.check_choice('hparams', name, tuple(rates))
    if not tf.is_symbolic_tensor(value):
      arguments.check_not_negative(name, float(value))
    # The hint keeps a Python float in full precision on its way to float64.
    dtype = rates[name].dtype
    value = tf.convert_to_tensor(value, dtype_hint=dtype)
    rates[name] = tf.cast(value, dtype)
  optimizer_hparams = server_optimizer.get_hparams(state.optimizer)
  optimizer_hparams[_LEARNING_RATE] = rates['server_learning_rate']
  return state._replace(
      client_learning_rate=rates['client_learning_rate'],
      optimizer=server_optimizer.set_hparams(
          state.optimizer, optimizer_hparams
      ),
  )
