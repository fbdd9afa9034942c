"""CEAL, Algorithm 2, as an iterative process: one `next` is one exchange."""

from collections.abc import Callable
from typing import Optional
import warnings

import tensorflow as tf
import tensorflow_federated as tff

from tff_localupdate import arguments
from tff_localupdate import horizon_process
from tff_localupdate import model_weights
from tff_localupdate.ceal import client_work
from tff_localupdate.ceal import exchange_plan
from tff_localupdate.ceal import federated_exchange
from tff_localupdate.ceal import schedule as schedule_lib
from tff_localupdate.ceal import server_step
from tff_localupdate.compression import codes
from tff_localupdate.compression import quantizers
from tff_localupdate.compression import random_seeds

INITIAL_POINTS = ('zero', 'sphere')


class CealProcess(horizon_process.HorizonProcess):
  """CEAL; its states are `server_step.CealState`."""

  def __init__(
      self,
      initialize_fn: tff.Computation,
      next_fn: tff.Computation,
      initial_values_fn: Callable[[tf.Tensor], server_step.CealState],
      rules: exchange_plan.ExchangeRules,
      true_norm_fn: server_step.NormFn,
  ):
    super().__init__(initialize_fn, next_fn, initial_values_fn)
    self._rules = rules
    self._true_norm_fn = true_norm_fn

  def samples_needed(self, state: server_step.CealState) -> int:
    return int(state.next_samples)

  def rows_needed(self, state: server_step.CealState) -> int:
    return schedule_lib.padded_size(self.samples_needed(state))

  def is_finished(self, state: server_step.CealState) -> bool:
    return int(state.time_used) >= self._rules.horizon

  def set_model_weights(
      self,
      state: server_step.CealState,
      model_weights: tff.learning.models.ModelWeights,
  ) -> server_step.CealState:
    """Returns `state` with other weights, and the true norm at them."""
    state = super().set_model_weights(state, model_weights)
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

  with S a `server_step.CealState`, R a `server_step.CealMetrics` and C a
  `client_work.ClientQueries`. The state says how many samples the next exchange
  needs (`samples_needed`); N, the rows given, may be more, and should be
  `rows_needed`, since each N compiles anew. A query is a mini-batch of B
  examples. All is computed in the dtype of the trainable weights.

  Source: arXiv 2301.08869, Algorithm 2, whose outline is the paper's. The
  messages, the quantizer, the code, the clipping, and that j is kept, are
  inferred.

  Departures: in the rest of the horizon, where nothing is sent, no samples are
  needed (a regret counts the queries; their gradients are never used).

  Args:
    model: The model; its loss is a mean over the examples of a batch, plus, if
      need be, what depends on the weights only.
    schedule: The schedules; sigma among them, and M, which must be the number
      of clients in each call.
    horizon: T, the queries of each client. One shorter than the first stage is
      legal, sends nothing, and warns.
    batch_size: B.
    step_size: The initial eta, above 0; see `schedule.default_step_size`.
    code: The code whose bits are counted; None is the signed unary one.
    grid: What resolutions bound, see `quantizers.GridQuantizer`.
    initial_point: x^(1): `zero`, or `sphere`, uniform on the unit sphere.
    epoch_length: `estimated`, or `oracle`, which knows the norm and takes
      t_k = 2 sigma^2 / (M |grad f(x^(k))|^2) samples in each epoch, without a
      test; see `exchange_plan.ExchangeRules.plan`.
    true_norm_fn: Maps trainable weights to |grad f|, for the metrics and for
      `oracle`; None gives NaN.
    clip: Whether clients and server clip.
    reset_stage: Whether each epoch starts with the first stage again.
    broadcast_every_exchange: Whether b is broadcast, and its bits counted, also
      if the test fails; it is not used then.
    seed: A whole number; determines all draws.
    dtype: `float32` or `float64`, which the trainable weights of `model` must
      have. None takes theirs.

  Returns:
    The `CealProcess`.

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
  weights, dtype = model_weights.checked_weights(model, dtype)
  rules = exchange_plan.ExchangeRules(
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
  true_norm = federated_exchange.checked_norm_fn(rules, true_norm_fn)
  _warn_if_nothing_is_sent(rules)

  def initial_state(seed):
    return federated_exchange.initial_state(
        rules,
        weights,
        step_size=step_size,
        seed=seed,
        on_sphere=initial_point == 'sphere',
        true_norm_fn=true_norm,
    )

  initialize = federated_exchange.build_initialize(initial_state, seed)
  next_fn = federated_exchange.build_next(
      initialize.type_signature.result.member,
      client_work.queries_type(model.input_spec, batch_size),
      rules,
      model,
      true_norm,
  )
  return CealProcess(initialize, next_fn, initial_state, rules, true_norm)


def _warn_if_nothing_is_sent(rules: exchange_plan.ExchangeRules) -> None:
  stage = rules.schedule.first_stage
  needed = rules.schedule.num_samples(stage)
  if not rules.is_oracle and needed > rules.horizon:
    warnings.warn(
        f'horizon {rules.horizon} is shorter than the {needed} samples of the '
        f'first stage, {stage}: nothing will be sent, and nothing learned.',
        stacklevel=3,
    )
