"""CEAL, Algorithm 2, as an iterative process: one `next` is one exchange."""

import collections
from collections.abc import Callable
from typing import Any, Optional
import warnings

import tensorflow as tf
import tensorflow_federated as tff

from tff_localupdate import arguments
from tff_localupdate import models
from tff_localupdate.ceal import exchange
from tff_localupdate.ceal import schedule as schedule_lib
from tff_localupdate.ceal import server_step
from tff_localupdate.compression import codes
from tff_localupdate.compression import messages
from tff_localupdate.compression import quantizers
from tff_localupdate.compression import random_seeds

# The place of the initial point among the seeds; exchanges count from 0.
_INITIAL_POINT = -1


def initial_server_state(
    rules: exchange.ExchangeRules,
    model_weights: tff.learning.models.ModelWeights,
    *,
    step_size: float,
    seed: tf.Tensor,
    on_sphere: bool,
    true_norm_fn: server_step.NormFn,
) -> server_step.CealState:
  """Returns the state before the first exchange.

  x^(1) is uniform on the unit sphere if `on_sphere`, otherwise 0; the trainable
  `model_weights` give only structure and shapes.
  """
  like, non_trainable = tf.nest.map_structure(
      tf.constant, (model_weights.trainable, model_weights.non_trainable)
  )
  vector = tf.zeros([rules.dimension], rules.dtype)
  if on_sphere:
    vector = random_seeds.draw_unit_vector(
        rules.dimension,
        random_seeds.derive_seed(seed, _INITIAL_POINT),
        vector.dtype,
    )
  weights = messages.unflatten(vector, like)
  zero = tf.constant(0, tf.int64)
  return server_step.with_plan(
      rules,
      server_step.CealState(
          model_weights=tff.learning.models.ModelWeights(
              weights, non_trainable
          ),
          step_size=tf.constant(step_size, rules.dtype),
          epoch=zero + 1,
          stage=zero + rules.schedule.first_stage,
          time_used=zero,
          exchange=zero,
          next_queries=zero,
          next_samples=zero,
          total_uplink_bits=zero,
          downlink_bits=zero,
          estimated_gradient_norm=tf.constant(float('nan'), rules.dtype),
          true_gradient_norm=true_norm_fn(weights),
          passes_by_rounding=zero,
          seed=seed,
      ),
  )


def build_initialize(
    initial_state_fn: Callable[[tf.Tensor], server_step.CealState], seed: int
) -> tff.Computation:
  """Returns `initialize`, given how a seed makes a state."""

  @tff.tensorflow.computation
  def initial_values():
    return initial_state_fn(tf.constant(seed, tf.int64))

  @tff.federated_computation
  def initialize():
    return tff.federated_eval(initial_values, tff.SERVER)

  return initialize


def build_next(
    state_type: tff.Type,
    client_type: tff.Type,
    rules: exchange.ExchangeRules,
    model: tff.learning.models.FunctionalModel,
    true_norm_fn: server_step.NormFn,
) -> tff.Computation:
  """Returns `next`, see `build_ceal`.

  What is broadcast here, x^(k) and the plan, is known to all in the protocol:
  clients keep it, while those of a simulation keep nothing.
  """

  @tff.tensorflow.computation(state_type)
  def prepare(state):
    plan = server_step.current_plan(rules, state)
    return state.model_weights, plan, server_step.exchange_seed(state)

  @tff.tensorflow.computation(client_type, prepare.type_signature.result)
  def work(client, received):
    weights, plan, seed = received
    losses = models.build_model_losses(model, weights.non_trainable)
    return exchange.send_gradient(
        rules, losses.training, weights.trainable, client, plan, seed
    )

  @tff.tensorflow.computation
  def update(state, totals):
    return server_step.server_step(rules, state, totals, true_norm_fn)

  @tff.federated_computation(
      tff.FederatedType(state_type, tff.SERVER),
      tff.FederatedType(client_type, tff.CLIENTS),
  )
  def next_fn(state, clients):
    received = tff.federated_broadcast(tff.federated_map(prepare, state))
    sent = tff.federated_map(work, (clients, received))
    new_state, metrics = tff.federated_map(
        update, (state, tff.federated_sum(sent))
    )
    return tff.learning.templates.LearningProcessOutput(new_state, metrics)

  return next_fn


def checked_norm_fn(
    rules: exchange.ExchangeRules, true_norm_fn: Any
) -> server_step.NormFn:
  """Returns `true_norm_fn` with its result checked; NaN in place of None.

  Raises ValueError if the epoch length needs it but there is none, or, when it
  is called, if it returns no scalar.
  """
  if true_norm_fn is None:
    if rules.is_oracle:
      raise ValueError(
          "true_norm_fn must be given with epoch_length='oracle', found None."
      )
    return lambda weights: tf.constant(float('nan'), rules.dtype)

  def true_norm(weights):
    norm = tf.convert_to_tensor(true_norm_fn(weights))
    if norm.shape.rank != 0:
      raise ValueError(
          f'true_norm_fn must return a scalar, found shape {norm.shape}.'
      )
    return tf.cast(norm, rules.dtype)

  return true_norm


INITIAL_POINTS = ('zero', 'sphere')


class CealProcess(tff.templates.IterativeProcess):
  """CEAL with what a loop around it has to know, see `build_ceal`.

  `initialize` and `next` are TFF computations. The other methods are plain
  functions of a `server_step.CealState` and need no execution context.
  """

  def __init__(
      self,
      initialize_fn: tff.Computation,
      next_fn: tff.Computation,
      initial_values_fn: Callable[[tf.Tensor], server_step.CealState],
      rules: exchange.ExchangeRules,
      true_norm_fn: server_step.NormFn,
  ):
    super().__init__(initialize_fn, next_fn)
    self._initial_values_fn = tf.function(initial_values_fn, autograph=False)
    self._rules = rules
    self._true_norm_fn = true_norm_fn

  def samples_needed(self, state: server_step.CealState) -> int:
    """Returns how many batches of each client the next exchange reads."""
    return int(state.next_samples)

  def rows_needed(self, state: server_step.CealState) -> int:
    """Returns N, the rows that `batches` should have; few N occur."""
    return schedule_lib.padded_size(self.samples_needed(state))

  def is_finished(self, state: server_step.CealState) -> bool:
    """Returns whether all T queries are done; then `next` changes nothing."""
    return int(state.time_used) >= self._rules.horizon

  def initialize_with_seed(self, seed: int) -> server_step.CealState:
    """Returns the initial state for another seed; nothing is recompiled."""
    random_seeds.check_seed('seed', seed)
    return self._initial_values_fn(tf.constant(seed, tf.int64))

  def get_hparams(
      self, state: server_step.CealState
  ) -> collections.OrderedDict[str, Any]:
    """Returns eta by its name, `step_size`."""
    return collections.OrderedDict(step_size=state.step_size)

  def set_hparams(
      self,
      state: server_step.CealState,
      hparams: collections.OrderedDict[str, Any],
  ) -> server_step.CealState:
    """Returns `state` with another `step_size`, else ValueError."""
    for name, value in hparams.items():
      arguments.check_choice('hparams', name, ('step_size',))
      arguments.check_positive(name, float(value))
      # The hint keeps a Python float in full precision on its way to float64.
      dtype = tf.as_dtype(self._rules.dtype)
      value = tf.convert_to_tensor(value, dtype_hint=dtype)
      state = state._replace(step_size=tf.cast(value, dtype))
    return state

  def get_model_weights(
      self, state: server_step.CealState
  ) -> tff.learning.models.ModelWeights:
    """Returns the model weights in `state`."""
    return state.model_weights

  def set_model_weights(
      self,
      state: server_step.CealState,
      model_weights: tff.learning.models.ModelWeights,
  ) -> server_step.CealState:
    """Returns `state` with other weights, and the true norm at them."""
    state = models.replace_weights(state, model_weights)
    norm = self._true_norm_fn(state.model_weights.trainable)
    return server_step.with_plan(
        self._rules, state._replace(true_gradient_norm=norm)
    )


def build_ceal(
    model: tff.learning.models.FunctionalModel,
    schedule: schedule_lib.Schedule,
    *,
    horizon: int,
    batch_size: int,
    step_size: float,
    code: Optional[codes.Code] = None,
    grid: str = 'vector',
    initial_point: str = 'zero',
    epoch_length: str = 'estimated',
    true_norm_fn: Optional[server_step.NormFn] = None,
    clip: bool = True,
    reset_stage: bool = False,
    broadcast_every_exchange: bool = False,
    seed: int = 0,
    dtype: Optional[str] = None,
) -> CealProcess:
  """Builds CEAL over client data given as tensors.

  From x^(1) known to all, k = 1, j = 1 and t = 0, while t < T:

      n = s_j; if n > T - t: query x^(k) for the T - t steps left, and stop
      client m: g_m = mean of the gradients of n queries at x^(k)
                q_m = Q(clip(g_m, B_j + G_j), gamma_j); sends Code(q_m)
      t <- t + n
      server:   g = (1/M) sum_m q_m
      if |g| < 4 tau_j:  broadcasts 0; j <- j + 1
      else:              broadcasts 1 and Code(b), b = Q(clip(g, B_j + tau_j),
                         phi_j); x^(k+1) = x^(k) - eta b; k <- k + 1

  The symbols are those of `schedule.Schedule` and `quantizers.GridQuantizer`.
  Each pass of the loop is one exchange and one call of `next`, of the type

      (<S@SERVER, {C}@CLIENTS> -> <state=S@SERVER, metrics=R@SERVER>)

  with S a `server_step.CealState`, R a `server_step.CealMetrics` and C an
  `exchange.ClientQueries` of N rows, at least `samples_needed`, best
  `rows_needed`, since each N compiles anew. A query is a mini-batch of B
  examples. All is computed in the dtype of the trainable weights.

  Source: arXiv 2301.08869, Algorithm 2, whose outline is the paper's. The
  messages, the quantizer, the code, the clipping, and that j is kept, are
  inferred.

  Departures: in the rest of the horizon, where nothing is sent, no samples are
  needed (a regret counts the queries; their gradients are never used).

  Args:
    model: Its loss is a mean over the examples of a batch, plus, if need be,
      what depends on the weights only.
    schedule: sigma and M among the rest; each call takes M clients.
    horizon: T, the queries of each client. One shorter than the first stage is
      legal, sends nothing, and warns.
    batch_size: B.
    step_size: The initial eta, above 0; see `schedule.default_step_size`.
    code: The code whose bits are counted; None is the signed unary one.
    grid: What resolutions bound, see `quantizers.GridQuantizer`.
    initial_point: x^(1): `zero`, or `sphere`, uniform on the unit sphere.
    epoch_length: `estimated`, or `oracle`, which knows the norm and takes
      t_k = 2 sigma^2 / (M |grad f(x^(k))|^2) samples in each epoch, without a
      test; see `exchange.ExchangeRules.plan`.
    true_norm_fn: Maps trainable weights to |grad f|, for the metrics and for
      `oracle`; None gives NaN.
    clip: Whether clients and server clip.
    reset_stage: Whether each epoch starts with the first stage again.
    broadcast_every_exchange: Whether b is broadcast, and its bits counted, also
      if the test fails; it is not used then.
    seed: A whole number; determines all draws.
    dtype: `float32` or `float64`, as the trainable weights; None takes theirs.

  Raises:
    TypeError: If `model`, `schedule` or `code` is not of its type.
    ValueError: If any other argument is out of its range.
  """
  arguments.check_type('model', model, tff.learning.models.FunctionalModel)
  arguments.check_type('schedule', schedule, schedule_lib.Schedule)
  arguments.check_count('batch_size', batch_size)
  arguments.check_positive('step_size', step_size)
  arguments.check_choice('initial_point', initial_point, INITIAL_POINTS)
  random_seeds.check_seed('seed', seed)
  weights, dtype = models.checked_weights(model, dtype)
  rules = exchange.ExchangeRules(
      schedule=schedule,
      horizon=horizon,
      dimension=sum(leaf.size for leaf in tf.nest.flatten(weights.trainable)),
      dtype=dtype,
      quantizer=quantizers.GridQuantizer(grid),
      code=codes.SignedUnaryCode() if code is None else code,
      epoch_length=epoch_length,
      clip=clip,
      reset_stage=reset_stage,
      broadcast_every_exchange=broadcast_every_exchange,
  )
  true_norm = checked_norm_fn(rules, true_norm_fn)
  _warn_if_nothing_is_sent(rules)

  def initial_state(seed):
    return initial_server_state(
        rules,
        weights,
        step_size=step_size,
        seed=seed,
        on_sphere=initial_point == 'sphere',
        true_norm_fn=true_norm,
    )

  initialize = build_initialize(initial_state, seed)
  next_fn = build_next(
      initialize.type_signature.result.member,
      exchange.queries_type(model.input_spec, batch_size),
      rules,
      model,
      true_norm,
  )
  return CealProcess(initialize, next_fn, initial_state, rules, true_norm)


def _warn_if_nothing_is_sent(rules: exchange.ExchangeRules) -> None:
  stage = rules.schedule.first_stage
  needed = rules.schedule.num_samples(stage)
  if not rules.is_oracle and needed > rules.horizon:
    warnings.warn(
        f'horizon {rules.horizon} is shorter than the {needed} samples of the '
        f'first stage, {stage}: nothing will be sent, and nothing learned.',
        stacklevel=3,
    )
