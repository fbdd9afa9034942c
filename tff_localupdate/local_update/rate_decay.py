"""How the two rates of LocalUpdateDecay decay, given each round's loss."""

from typing import NamedTuple, Optional

import tensorflow as tf

from tff_localupdate import arguments
from tff_localupdate.local_update import plateau


class RateDecay(NamedTuple):
  """When and how one of the two rates decays.

  Attributes:
    rule: When.
    factor: What the rate is multiplied by, in (0, 1].
    floor: What it does not fall below, not negative.
  """

  rule: plateau.PlateauRule
  factor: float
  floor: float


def build_rate_decays(
    rule: plateau.PlateauRule,
    server_rule: Optional[plateau.PlateauRule],
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

  Returns:
    The client's and the server's.

  Raises:
    TypeError: If a rule is none.
    ValueError: If a number is out of its range, or a setting of the callback is
      given with the canonical rule.
  """
  arguments.check_type('rule', rule, plateau.PlateauRule)
  if server_rule is not None:
    arguments.check_type('server_rule', server_rule, plateau.PlateauRule)
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
) -> tuple[plateau.PlateauState, ...]:
  """Returns one state, or by the callback's rule one for each rate."""
  if decays[0].rule.rule == 'canonical':
    return (plateau.initial_state(decays[0].rule),)
  return tuple(plateau.initial_state(decay.rule) for decay in decays)


def apply(
    decays: tuple[RateDecay, RateDecay],
    states: tuple[plateau.PlateauState, ...],
    loss: tf.Tensor,
    rates: tuple[tf.Tensor, tf.Tensor],
) -> tuple[list[plateau.PlateauResult], list[tf.Tensor]]:
  """Runs the rule, or the callback's two, on the loss of a round.

  Args:
    decays: How the client rate and the server rate decay.
    states: As many as `initial_states` returns.
    loss: f_t.
    rates: gamma_t and eta_t.

  Returns:
    A result for each state, and gamma_{t+1} and eta_{t+1}, which are the old
    ones bit for bit if they do not decay.
  """
  if len(states) == 1:
    results = [plateau.update(decays[0].rule, states[0], loss)] * 2
  else:
    results = [
        plateau.update(decay.rule, state, loss, rate > decay.floor)
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
