"""An algorithm as the experiment loop drives it: the same way for all.

Codes of messages by their names in settings.
"""

import abc
import math
from typing import Any, Mapping, NamedTuple, Optional

import numpy as np
import tensorflow_federated as tff

from baselines.settings import algorithms
from baselines.settings import rates as rates_lib
from baselines.tasks import task as task_lib
from tff_localupdate.ceal import process as process_lib
from tff_localupdate.compression import codes


class BuildContext(NamedTuple):
  """What a builder of an algorithm gets besides the algorithm's settings.

  Attributes:
    model: The task's model, in the dtype of the run.
    task: The task.
    run: Has the attributes `batch_size`, `clients_per_round` and `dtype`.
    server_optimizer: Settings of the server optimizer; None for an algorithm
      that has none.
    rate: How the rates change from round to round; None likewise.
  """

  model: tff.learning.models.FunctionalModel
  task: task_lib.Task
  run: Any
  server_optimizer: Optional[rates_lib.ServerOptimizerConfig] = (
      None
  )
  rate: Optional[rates_lib.RateConfig] = None


class CohortData(NamedTuple):
  """The data of a round's M clients, as drawn.

  Attributes:
    batches: (x, y), leaves [M, N, B, ...]; N is the driver's `rows_needed`.
    num_examples: int32 [M], the examples that each client holds.
    examples: (x, y), leaves [M, E, ...], all that each client holds, padded;
      None unless asked for.
    batch_sizes: int32 [M, N], how many rows of each batch count; None unless
      they are drawn in epochs.
  """

  batches: Any
  num_examples: np.ndarray
  examples: Any = None
  batch_sizes: Optional[np.ndarray] = None


class Driver(abc.ABC):
  """What a loop needs of an algorithm, besides its program.

  Attributes:
    process: The algorithm's `tff.templates.IterativeProcess`, with
      `get_model_weights`, `set_model_weights` and `set_hparams`.
    gains_by_xla: Whether XLA may be chosen for it where nobody has chosen.
    num_epochs: How often a client goes through its data in a round; None if it
      draws batches with replacement.
  """

  gains_by_xla: bool = True
  num_epochs: Optional[int] = None

  def __init__(self, process: Any):
    self.process = process

  @abc.abstractmethod
  def initial_state(
      self,
      program: Any,
      weights: tff.learning.models.ModelWeights,
      rates: Mapping[str, float],
      seed: int,
  ) -> Any:
    """Returns the state before round 1.

    Args:
      program: The compiled process.
      weights: x_1.
      rates: The settings that the config's type lists as its `RATES`, and
        server_learning_rate if the algorithm has a server optimizer.
      seed: Determines the draws of the process, if it makes any.
    """

  @abc.abstractmethod
  def samples_needed(self, state: Any) -> int:
    """Returns how many batches of each client the next round reads."""

  def rows_needed(self, state: Any) -> int:
    """Returns N, the rows that the batches of the next round must have."""
    return self.samples_needed(state)

  def is_finished(self, state: Any) -> bool:
    """Returns whether the algorithm has come to an end of its own."""
    del state
    return False

  @abc.abstractmethod
  def cohort(self, drawn: CohortData) -> Any:
    """Returns the value that the program takes, with leading axes M."""

  def row(self, metrics: Any, state: Any) -> dict[str, Any]:
    """Returns the numbers of a round by column; None where there is none.

    Args:
      metrics: Of the round.
      state: After the round.
    """
    del state
    values = {name: getattr(metrics, name) for name in algorithms.TRAINING}
    if not values['clients_used'] and math.isnan(
        values['loss_before_training']
    ):
      values['loss_before_training'] = None
    return values

  def remark(self, metrics: Any) -> Optional[str]:
    """Returns what is odd about a round, in a sentence, if anything is."""
    del metrics
    return None


class HorizonDriver(Driver):
  """Drives a `horizon_process.HorizonProcess`."""

  process: process_lib.HorizonProcess

  def initial_state(
      self,
      program: Any,
      weights: tff.learning.models.ModelWeights,
      rates: Mapping[str, float],
      seed: int,
  ) -> Any:
    del program  # States for other seeds need no computation of TFF.
    state = self.process.initialize_with_seed(seed)
    # Rates first: what is planned next may depend on the weights.
    state = self.process.set_hparams(state, dict(rates))
    return self.process.set_model_weights(state, weights)

  def samples_needed(self, state: Any) -> int:
    return self.process.samples_needed(state)

  def rows_needed(self, state: Any) -> int:
    return self.process.rows_needed(state)

  def is_finished(self, state: Any) -> bool:
    return self.process.is_finished(state)


def message_values(metrics: Any, state: Any) -> dict[str, Any]:
  """Returns the columns on time and bits of an algorithm with a horizon."""
  num_clients = max(1, int(metrics.clients))
  return {
      'num_queries': metrics.num_queries,
      'time_used': metrics.time_used,
      'sent': int(metrics.sent),
      'uplink_bits': metrics.uplink_bits,
      'downlink_bits': metrics.downlink_bits,
      'cumulative_uplink_bits': int(state.total_uplink_bits) / num_clients,
      'cumulative_downlink_bits': int(state.downlink_bits),
      'clients_not_sent': metrics.clients_not_sent,
  }


def build_code(
    name: str, levels: Optional[int] = None, *, signed: bool = True
) -> codes.Code:
  """Returns a code.

  Args:
    name: `fixed_width`, `signed_unary`, `elias_gamma` or `run_length`.
    levels: The largest magnitude, for `fixed_width`.
    signed: Whether integers may be negative, for `fixed_width`.
  """
  if name == 'fixed_width':
    return codes.FixedWidthCode(levels, signed=signed)
  if name == 'signed_unary':
    return codes.SignedUnaryCode()
  if name == 'elias_gamma':
    return codes.EliasGammaCode()
  if name == 'run_length':
    return codes.RunLengthCode()
  raise ValueError(
      'name must be fixed_width, signed_unary, elias_gamma or run_length, '
      f'found {name!r}.'
  )
