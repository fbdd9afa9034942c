"""Rates that change from round to round by a schedule known beforehand."""

import dataclasses
from typing import Any, NamedTuple, Optional

import tensorflow as tf
import tensorflow_federated as tff

from tff_localupdate import arguments
from tff_localupdate.local_update import rates as rates_lib

KINDS = ('constant', 'inverse', 'steps')


@dataclasses.dataclass(frozen=True)
class RateSchedule:
  """What a rate is multiplied by in round t = 1, 2, ...

      constant:  1
      inverse:   (1 + xi) / (t + xi), that is c / (t + xi) with c = (1 + xi)
                 times the rate of round 1
      steps:     the product of the factors f_i whose round r_i <= t

  The inverse one is that of Theorems 27 and 29 of Charles and Konecny (2020).

  Attributes:
    kind: `constant`, `inverse` or `steps`.
    offset: xi, finite and above -1; `inverse` only, where it is needed.
    steps: Pairs (r_i, f_i), the rounds rising from 2, the factors finite and
      not negative; `steps` only, where there must be one.

  Raises:
    ValueError: If a field is out of its range, missing, or would be ignored.
  """

  kind: str = 'constant'
  offset: Optional[float] = None
  steps: tuple[tuple[int, float], ...] = ()

  def __post_init__(self) -> None:
    arguments.check_choice('kind', self.kind, KINDS)
    if (self.offset is not None) != (self.kind == 'inverse'):
      raise ValueError(
          "offset must be given with kind 'inverse', and only then, found "
          f'{self.offset!r} with {self.kind!r}.'
      )
    if self.offset is not None:
      arguments.check_positive('offset + 1', self.offset + 1.0)
    if bool(self.steps) != (self.kind == 'steps'):
      raise ValueError(
          "steps must be given with kind 'steps', and only then, found "
          f'{self.steps!r} with {self.kind!r}.'
      )
    last = 1
    for round_num, factor in self.steps:
      arguments.check_count('round of steps', round_num)
      arguments.check_not_negative('factor of steps', factor)
      if round_num <= last:
        raise ValueError(
            f'steps must have rounds that rise from 2, found {self.steps!r}.'
        )
      last = round_num

  def factor(self, round_num: Any) -> tf.Tensor:
    """Returns the factor of round t, a float64 scalar; t is an integer."""
    time = tf.cast(round_num, tf.float64)
    if self.kind == 'inverse':
      offset = tf.constant(self.offset, tf.float64)
      return (1.0 + offset) / (time + offset)
    factor = tf.constant(1.0, tf.float64)
    for start, step in self.steps:
      step = tf.constant(step, tf.float64)
      factor = tf.where(time >= float(start), factor * step, factor)
    return factor


class ScheduledState(NamedTuple):
  """What the server keeps between rounds.

  Attributes:
    process: The state of the process inside, with the rates of the next round.
    client_learning_rate: gamma_1, what the client schedule multiplies.
    server_learning_rate: eta_1, what the server schedule multiplies.
    round_num: int64, the number of rounds done.
  """

  process: Any
  client_learning_rate: Any
  server_learning_rate: Any
  round_num: Any


class ScheduledProcess(rates_lib.WrappedProcess):
  """A process whose rates follow schedules; see `build_scheduled`.

  Hyperparameters are read and set as those of round 1, whatever the round.
  """

  def __init__(self, initialize_fn, next_fn, process, schedules, rates):
    super().__init__(initialize_fn, next_fn, process)
    self._schedules = schedules
    self._rates = rates

  def get_hparams(self, state: ScheduledState) -> Any:
    """Returns the hyperparameters of round 1."""
    hparams = self._process.get_hparams(state.process)
    return _access(self._rates, hparams).set(
        hparams, state.client_learning_rate, state.server_learning_rate
    )

  def set_hparams(self, state: ScheduledState, hparams: Any) -> ScheduledState:
    """Returns `state` as it would be had round 1 had these hyperparameters."""
    first = {**self.get_hparams(state), **hparams}
    process_state = self._process.set_hparams(state.process, first)
    hparams = self._process.get_hparams(process_state)
    gamma, eta = _access(self._rates, hparams).get(hparams)
    state = state._replace(
        process=process_state,
        client_learning_rate=gamma,
        server_learning_rate=eta,
    )
    return _with_rates(self._process, self._schedules, self._rates, state)


def build_scheduled(
    process: tff.templates.IterativeProcess,
    *,
    client_schedule: RateSchedule = RateSchedule(),
    server_schedule: RateSchedule = RateSchedule(),
    rates: Optional[rates_lib.RateAccess] = None,
) -> ScheduledProcess:
  """Builds a process around another one whose rates follow schedules.

  Round t runs `process` with

      gamma_t = gamma_1 times the client schedule's factor of round t
      eta_t   = eta_1 times the server schedule's factor of round t

  with gamma_1 and eta_1 as `process` starts with. `next` has the type

      (<S@SERVER, D@CLIENTS> -> <state=S@SERVER, metrics=R@SERVER>)

  with S a `ScheduledState`, D and R as in `process`. Rates and round are in the
  state: nothing is recompiled, and a run goes on from a saved state as if it
  had not stopped.

  Source: Charles and Konecny, arXiv 2007.00878, Algorithm 1, where both rates
  have an index t.

  Args:
    process: An iterative process with `get_hparams` and `set_hparams`, and one
      argument besides its state.
    client_schedule: That of gamma.
    server_schedule: That of eta.
    rates: How to read and write the rates; None is `rates.find_rates`.

  Raises:
    TypeError: If `process` or a schedule is not of its type.
    ValueError: If `process` changes its rates itself.
  """
  for name, schedule in (
      ('client_schedule', client_schedule),
      ('server_schedule', server_schedule),
  ):
    arguments.check_type(name, schedule, RateSchedule)
  state_type, metrics_type = rates_lib.checked_types(process)
  schedules = (client_schedule, server_schedule)

  def wrap(process_state):
    hparams = process.get_hparams(process_state)
    gamma, eta = _access(rates, hparams).get(hparams)
    state = ScheduledState(process_state, gamma, eta, tf.constant(0, tf.int64))
    return _with_rates(process, schedules, rates, state)

  def advance(state, process_state, metrics):
    state = state._replace(process=process_state, round_num=state.round_num + 1)
    return _with_rates(process, schedules, rates, state), metrics

  initialize, next_fn = rates_lib.build_computations(
      process, state_type, metrics_type, wrap, advance
  )
  return ScheduledProcess(initialize, next_fn, process, schedules, rates)


def _access(
    rates: Optional[rates_lib.RateAccess], hparams: Any
) -> rates_lib.RateAccess:
  return rates_lib.find_rates(hparams) if rates is None else rates


def _with_rates(process, schedules, rates, state):
  """Returns `state` with the rates of the round after `state.round_num`."""
  hparams = process.get_hparams(state.process)
  first = (state.client_learning_rate, state.server_learning_rate)
  new_rates = [
      tf.cast(
          tf.cast(rate, tf.float64) * schedule.factor(state.round_num + 1),
          tf.convert_to_tensor(rate).dtype,
      )
      for schedule, rate in zip(schedules, first)
  ]
  hparams = _access(rates, hparams).set(hparams, *new_rates)
  return state._replace(process=process.set_hparams(state.process, hparams))
