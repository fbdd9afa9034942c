"""LocalUpdateDecay: Algorithm 3 of Charles and Konecny (2020), section 7.

Around any process: when its loss stops falling, both of its rates decay. The
rule for when is in `plateau`; how a process is wrapped, in `rates`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Optional

import tensorflow as tf
import tensorflow_federated as tff

from tff_localupdate.local_update import plateau
from tff_localupdate.local_update import rates as rates_lib


class LocalUpdateDecayState(NamedTuple):
  """What the server keeps between rounds.

  Attributes:
    process: The state of the process inside, with the rates.
    plateaus: One `plateau.PlateauState`, or by the callback's rule two: the
      client rate's and the server rate's.
  """

  process: Any
  plateaus: Any


class LocalUpdateDecayMetrics(NamedTuple):
  """What is reported of a round.

  Attributes:
    process: The metrics of the process inside.
    loss: float64, f_t, the loss that the rule was given.
    average_loss: float64, its average over the window; +inf while that is not
      full.
    client_learning_rate: gamma_t, as the process had it in this round.
    server_learning_rate: eta_t, likewise.
    client_decays: int32, how often the client rate has decayed up to this
      round, this one included; if it has in this round, the next one is the
      first with the new rate.
    server_decays: int32, the same for the server rate.
  """

  process: Any
  loss: Any
  average_loss: Any
  client_learning_rate: Any
  server_learning_rate: Any
  client_decays: Any
  server_decays: Any


class LocalUpdateDecayProcess(rates_lib.WrappedProcess):
  """A process whose rates decay; see `build_local_update_decay`.

  New rates that are set leave window and counters as they are.
  """


def build_local_update_decay(
    process: tff.templates.IterativeProcess,
    loss_fn: Optional[Callable[[Any], tf.Tensor]] = None,
    *,
    rule: Optional[plateau.PlateauRule] = None,
    client_decay: float = 0.1,
    server_decay: float = 0.9,
    rates: Optional[rates_lib.RateAccess] = None,
    server_rule: Optional[plateau.PlateauRule] = None,
    min_client_learning_rate: float = 0.0,
    min_server_learning_rate: float = 0.0,
) -> LocalUpdateDecayProcess:
  """Builds LocalUpdateDecay around a process.

  Round t runs `process` with gamma_t and eta_t, and takes f_t from what it
  reports. If `plateau.update` then says to decay,

      gamma_{t+1} = alpha gamma_t,   eta_{t+1} = beta eta_t

  and else they stay. (f_t comes with q_t, which gamma_t has made, so that no
  earlier round could have the new rates.) `next` has the type

      (<S@SERVER, D@CLIENTS> -> <state=S@SERVER, metrics=R@SERVER>)

  with S a `LocalUpdateDecayState`, R a `LocalUpdateDecayMetrics`, and D as in
  `process`. Rates, window and counters are in S: nothing is recompiled when
  they change, and a run goes on from a saved S as if it had not stopped.

  By the callback's rule the two rates have a rule each, with windows, counters
  and best losses of their own; they decay together as long as settings agree
  and no floor is reached.

  Source: Charles and Konecny, On the Outsized Importance of Learning Rates in
  Local Update Methods, arXiv 2007.00878, Algorithm 3. Which factor belongs to
  which rate: google-research/federated, adaptive_lr_decay/README.md.

  Departures: none by the canonical rule where the paper's text is clear; see
  `plateau.update` for where it is not. The public callback monitors the loss
  averaged over examples and steps along a mean weighted by them; here both are
  what `process` makes of them. Its rates start at their floor if below it; here
  they are left there.

  Args:
    process: An iterative process with `get_hparams` and `set_hparams`, and one
      argument besides its state, such as those of this package and of
      `tff.learning`.
    loss_fn: Maps the metrics of a round, as TensorFlow sees them, to f_t, a
      scalar; NaN if there is none. None is `rates.find_loss`; mind what
      it says about the loss of `tff.learning`.
    rule: When the rates decay; None is `plateau.PlateauRule()`, the settings of
      the paper's experiments.
    client_decay: alpha, in (0, 1].
    server_decay: beta, in (0, 1].
    rates: How to read and write the rates; None is `rates.find_rates`.
    server_rule: When the server rate decays, if not by `rule`; both have to be
      the callback's.
    min_client_learning_rate: The floor of gamma; the callback's rule only.
    min_server_learning_rate: The floor of eta; the callback's rule only.

  Raises:
    TypeError: If `process` or a rule is not of its type.
    ValueError: If `process` changes its rates itself, or any other argument is
      out of its range, would be ignored, or is needed and missing.
  """
  decays = plateau.build_rate_decays(
      plateau.PlateauRule() if rule is None else rule,
      server_rule,
      factors=(client_decay, server_decay),
      floors=(min_client_learning_rate, min_server_learning_rate),
  )
  state_type, metrics_type = rates_lib.checked_types(process)
  loss_fn = rates_lib.find_loss if loss_fn is None else loss_fn

  def add_plateaus(process_state):
    return LocalUpdateDecayState(process_state, plateau.initial_states(decays))

  def decay_rates(state, process_state, metrics):
    hparams = process.get_hparams(process_state)
    access = rates_lib.find_rates(hparams) if rates is None else rates
    used = access.get(process.get_hparams(state.process))
    loss = loss_fn(metrics)
    results, new_rates = plateau.apply(
        decays, state.plateaus, loss, access.get(hparams)
    )
    new_hparams = access.set(hparams, *new_rates)
    # Bit for bit what they were, unless a rate decays.
    any_decays = tf.reduce_any([result.decays for result in results])
    new_hparams = tf.nest.map_structure(
        lambda new, old: tf.where(any_decays, new, old), new_hparams, hparams
    )
    new_state = LocalUpdateDecayState(
        process.set_hparams(process_state, new_hparams),
        tuple(result.state for result in results),
    )
    return new_state, LocalUpdateDecayMetrics(
        process=metrics,
        loss=tf.cast(loss, tf.float64),
        average_loss=results[0].average_loss,
        client_learning_rate=used[0],
        server_learning_rate=used[1],
        client_decays=results[0].state.num_decays,
        server_decays=results[-1].state.num_decays,
    )

  initialize, next_fn = rates_lib.build_computations(
      process, state_type, metrics_type, add_plateaus, decay_rates
  )
  return LocalUpdateDecayProcess(initialize, next_fn, process)
