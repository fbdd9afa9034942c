"""When and how the two rates decay: Algorithm 3's rule as pure functions.

Charles and Konecny (2020), section 7, in its windowed form. The loss before
training of each round goes in; out comes whether to decay, and the new rates.
The rule is a small state machine in pure TensorFlow on scalars: it runs eagerly
on Python numbers, in a `tf.function`, under XLA and in a TFF computation.
`decay` puts it around a process.
"""

import dataclasses
from typing import Any, NamedTuple, Optional, Union

import tensorflow as tf

from tff_localupdate import arguments

RULES = ('canonical', 'callback')


@dataclasses.dataclass(frozen=True)
class PlateauRule:
  """When the rates decay.

  Attributes:
    window: W >= 1, the rounds over which the loss is averaged.
    patience: P >= 1, the rounds without progress that make a decay.
    cooldown: C >= 0, the rounds after a decay, and at the start, in which none
      may follow.
    min_improvement: Delta, finite and not negative: by how much the loss has to
      fall below the best one so far to be progress.
    rule: `canonical`, the paper's rule, or `callback`, that of the public
      callback; see `update`.

  W = P = 1 and C = 0 is Algorithm 3 itself. The paper's experiments have 100
  for all three and Delta = 1e-4.

  Raises:
    ValueError: If a field is out of its range.
  """

  window: int = 100
  patience: int = 100
  cooldown: int = 100
  min_improvement: float = 1e-4
  rule: str = 'canonical'

  def __post_init__(self) -> None:
    arguments.check_choice('rule', self.rule, RULES)
    arguments.check_count('window', self.window)
    if not (self.rule == 'callback' and _is_zero(self.patience)):
      arguments.check_count('patience', self.patience)
    if not _is_zero(self.cooldown):
      arguments.check_count('cooldown', self.cooldown)
    arguments.check_not_negative('min_improvement', self.min_improvement)
    # NumPy's numbers would fix the dtype of what they meet.
    for name in ('window', 'patience', 'cooldown'):
      object.__setattr__(self, name, int(getattr(self, name)))
    object.__setattr__(self, 'min_improvement', float(self.min_improvement))

  @classmethod
  def for_representative_clients(
      cls,
      representative_clients: int,
      clients_per_round: int,
      *,
      min_improvement: float = 1e-4,
      rule: str = 'canonical',
  ) -> 'PlateauRule':
    """Returns the paper's default: P = W = C = ceil(N/M).

    N is how many clients represent the population, M how many train in a round.
    """
    arguments.check_count('representative_clients', representative_clients)
    arguments.check_count('clients_per_round', clients_per_round)
    rounds = -(-int(representative_clients) // int(clients_per_round))
    return cls(rounds, rounds, rounds, min_improvement, rule)


class PlateauState(NamedTuple):
  """What the rule remembers between rounds.

  Attributes:
    losses: float64 [W], the last losses, the newest at the end; +inf where
      there was no round yet.
    num_losses: int32, how many of `losses` are of a round.
    best: float64, the smallest average that was progress, +inf before.
    num_bad: int32, the rounds without progress in a row, 0 to P - 1.
    cooldown: int32, what is left of the cooldown.
    num_decays: int32, how often the rule has said to decay.
  """

  losses: Any
  num_losses: Any
  best: Any
  num_bad: Any
  cooldown: Any
  num_decays: Any


class PlateauResult(NamedTuple):
  """What a round's loss leads to.

  Attributes:
    state: The new `PlateauState`.
    decays: bool scalar, whether the rates of the next round decay.
    average_loss: float64, the average over the window; +inf while it is not
      full, NaN if the loss is.
  """

  state: PlateauState
  decays: tf.Tensor
  average_loss: tf.Tensor


def initial_state(rule: PlateauRule) -> PlateauState:
  """Returns the state before the first round."""
  infinity = tf.constant(float('inf'), tf.float64)
  return PlateauState(
      losses=tf.fill([rule.window], infinity),
      num_losses=tf.constant(0, tf.int32),
      best=infinity,
      num_bad=tf.constant(0, tf.int32),
      cooldown=tf.constant(rule.cooldown, tf.int32),
      num_decays=tf.constant(0, tf.int32),
  )


def update(
    rule: PlateauRule,
    state: PlateauState,
    loss: Union[float, tf.Tensor],
    may_decay: Union[bool, tf.Tensor] = True,
) -> PlateauResult:
  """Takes in the loss of one round, in float64.

  The canonical rule, with v the average of the last W losses, +inf before there
  are W, and `better` = v < best - Delta (25):

      if better: best = v
      if cooldown > 0: cooldown -= 1; bad = 0
      elif better or fewer than W losses: bad = 0
      else: bad += 1; if bad >= P: decay; bad = 0; cooldown = C

  `best` moves on progress alone, not with every smaller average: else a loss
  that falls by less than Delta each round would never count as progress. It
  moves in the cooldown too and is never reset.

  The callback's rule differs in three ways. Averages of windows that are not
  full count as rounds without progress; the cooldown is counted down before it
  is looked at, and so blocks C - 1 rounds only; and P = 0 is allowed, and acts
  as P = 1.

      if cooldown > 0: cooldown -= 1; bad = 0
      if better: best = v; bad = 0
      elif cooldown = 0: bad += 1
        if bad >= P and the rate may decay: decay; bad = 0; cooldown = C

  A loss of NaN leaves the state as it is, by either rule, as if the round had
  not been: it is what a round without clients reports. Nothing is known then
  about progress, and in the window it would stay for W rounds. (A diverged run
  reports it too, where decays no longer matter.)

  Source: Charles and Konecny, arXiv 2007.00878, Algorithm 3 and section 7;
  for the callback google-research/federated, adaptive_lr_decay/callbacks.py.

  Departures: where the paper's text is silent, the order of the steps was
  chosen here. The callback has no answer to NaN, and averages in float32.

  Args:
    rule: The rule.
    state: The state before the round.
    loss: f_t, the loss before training of the round.
    may_decay: Whether there is room for a decay. The callback's rate at its
      floor has none; counts then go on, and the decay does not happen.
  """
  loss = tf.cast(tf.convert_to_tensor(loss, dtype_hint=tf.float64), tf.float64)
  # A queue of fixed length: no shape depends on the round.
  losses = tf.concat([state.losses[1:], loss[tf.newaxis]], axis=0)
  num_losses = tf.minimum(state.num_losses + 1, rule.window)
  is_full = tf.equal(num_losses, rule.window)
  # An average of infinity is never better: until the window is full there is
  # no progress, and `best` stays.
  average = tf.where(is_full, tf.reduce_mean(losses), float('inf'))
  better = average < state.best - rule.min_improvement
  is_cooling = state.cooldown > 0
  cooldown = tf.maximum(state.cooldown - 1, 0)
  # Everything below is computed in every round and selected by conditions, in
  # the order in which the two listings above test them.
  if rule.rule == 'canonical':
    # Looks at the cooldown as it was before this round: C rounds are blocked.
    counts = tf.logical_not(is_cooling | better) & is_full
    num_bad = tf.where(counts, state.num_bad + 1, 0)
  else:
    # Looks at what is left of it after this round: C - 1 rounds are blocked.
    counts = tf.logical_not(better) & tf.equal(cooldown, 0)
    num_bad = tf.where(is_cooling | better, 0, state.num_bad)
    num_bad = tf.where(counts, num_bad + 1, num_bad)
  decays = counts & (num_bad >= rule.patience) & may_decay
  new_state = PlateauState(
      losses=losses,
      num_losses=num_losses,
      best=tf.where(better, average, state.best),
      num_bad=tf.where(decays, 0, num_bad),
      cooldown=tf.where(decays, rule.cooldown, cooldown),
      num_decays=state.num_decays + tf.cast(decays, tf.int32),
  )
  # A round without a loss is undone as a whole.
  is_known = tf.logical_not(tf.math.is_nan(loss))
  return PlateauResult(
      state=tf.nest.map_structure(
          lambda new, old: tf.where(is_known, new, old), new_state, state
      ),
      decays=decays & is_known,
      average_loss=tf.where(is_known, average, loss),
  )


def _is_zero(value: Any) -> bool:
  return not isinstance(value, bool) and value == 0


class RateDecay(NamedTuple):
  """By which rule and factor, in (0, 1], a rate decays, down to its floor."""

  rule: PlateauRule
  factor: float
  floor: float


def build_rate_decays(
    rule: PlateauRule,
    server_rule: Optional[PlateauRule],
    *,
    factors: tuple[float, float],
    floors: tuple[float, float],
) -> tuple[RateDecay, RateDecay]:
  """Returns how the client rate and the server rate decay.

  Args:
    rule: When both of them decay; with a `server_rule` the client rate alone.
    server_rule: When the server rate decays, or None.
    factors: alpha and beta.
    floors: The floors of gamma and eta.

  Raises:
    TypeError: If a rule has another type.
    ValueError: If a number is out of its range, or a setting of the callback is
      given with the canonical rule.
  """
  arguments.check_type('rule', rule, PlateauRule)
  if server_rule is not None:
    arguments.check_type('server_rule', server_rule, PlateauRule)
    if (rule.rule, server_rule.rule) != ('callback', 'callback'):
      raise ValueError(
          'server_rule must be given with two callback rules only, found '
          f'{rule.rule} and {server_rule.rule}.'
      )
  decays = []
  for name, factor, floor in zip(('client', 'server'), factors, floors):
    arguments.check_positive(f'{name}_decay', factor)
    if factor > 1.0:
      raise ValueError(f'{name}_decay must be at most 1, found {factor}.')
    arguments.check_not_negative(f'min_{name}_learning_rate', floor)
    if floor and rule.rule != 'callback':
      raise ValueError(
          f'min_{name}_learning_rate must be given with the callback rule '
          f'only, found {floor} with {rule.rule}.'
      )
    own_rule = server_rule if name == 'server' and server_rule else rule
    decays.append(RateDecay(own_rule, float(factor), float(floor)))
  return tuple(decays)


def initial_states(
    decays: tuple[RateDecay, RateDecay],
) -> tuple[PlateauState, ...]:
  """Returns one state, or by the callback's rule one for each rate."""
  if decays[0].rule.rule == 'canonical':
    return (initial_state(decays[0].rule),)
  return tuple(initial_state(decay.rule) for decay in decays)


def apply(
    decays: tuple[RateDecay, RateDecay],
    states: tuple[PlateauState, ...],
    loss: tf.Tensor,
    rates: tuple[tf.Tensor, tf.Tensor],
) -> tuple[list[PlateauResult], list[tf.Tensor]]:
  """Runs the rule, or the callback's two, on the loss of a round.

  Takes as many states as `initial_states` returns, f_t, and (gamma_t, eta_t).

  Returns:
    A result for each state, and gamma_{t+1} and eta_{t+1}, which are the old
    ones bit for bit if they do not decay.
  """
  if len(states) == 1:
    results = [update(decays[0].rule, states[0], loss)] * 2
  else:
    results = [
        update(decay.rule, state, loss, rate > decay.floor)
        for decay, state, rate in zip(decays, states, rates)
    ]
  new_rates = []
  for decay, result, rate in zip(decays, results, rates):
    # Constants of the rate's dtype: a cast would go by way of float32.
    factor = tf.constant(decay.factor, rate.dtype)
    floor = tf.constant(decay.floor, rate.dtype)
    decayed = tf.maximum(rate * factor, floor)
    new_rates.append(tf.where(result.decays, decayed, rate))
  return results[: len(states)], new_rates
