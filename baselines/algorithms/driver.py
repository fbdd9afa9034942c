"""An algorithm as the experiment loop drives it: the same way for all."""

import abc
import math
from typing import Any, Mapping, NamedTuple, Optional

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from baselines.settings import algorithms
from baselines.settings import rates as rates_lib
from baselines.tasks import task as task_lib
from tff_localupdate.compression import codes


class BuildContext(NamedTuple):
  """What a builder of an algorithm gets besides the algorithm's settings.

  Attributes:
    model: The task's model, in the dtype of the run.
    run: Has the attributes `batch_size`, `clients_per_round`, `dtype` and
      `horizon`.
    server_optimizer: Settings of the server optimizer; None for an algorithm
      that has none.
    rate: How the rates change from round to round; None likewise.
  """

  model: tff.learning.models.FunctionalModel
  task: task_lib.Task
  run: Any
  server_optimizer: Optional[rates_lib.ServerOptimizerConfig] = None
  rate: Optional[rates_lib.RateConfig] = None

  @property
  def float_bits(self) -> int:
    """The bits of all trainable weights, sent as floats."""
    leaves = tf.nest.flatten(self.model.initial_weights[0])
    width = 8 * np.dtype(self.run.dtype).itemsize
    return width * sum(np.size(leaf) for leaf in leaves)


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


class Messages(NamedTuple):
  """What was sent in a round.

  Attributes:
    sent: Whether anything was; if not, everything else is 0.
    total_uplink_bits: What all clients sent together.
    downlink_bits: What was broadcast; counted once.
    clients_not_sent: Clients that had no message for what they had to send.
  """

  sent: bool = False
  total_uplink_bits: int = 0
  downlink_bits: int = 0
  clients_not_sent: int = 0


class Driver(abc.ABC):
  """What a loop needs of an algorithm, besides its program.

  Attributes:
    process: The `tff.templates.IterativeProcess`, with `get_model_weights`,
      `set_model_weights` and `set_hparams`.
    gains_by_xla: Whether XLA may be chosen for it where nobody has chosen.
    num_epochs: How often a client goes through its data in a round; None if it
      draws batches with replacement.
    plans_by_state: Whether only the state tells how many batches a round reads;
      then its data cannot be drawn ahead.
  """

  gains_by_xla: bool = True
  num_epochs: Optional[int] = None
  plans_by_state: bool = False

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
    """Returns the state before round 1, at the weights x_1.

    `rates` are those of `ExperimentConfig.process_rates`; the seed determines
    the draws of the compiled process `program`, if it makes any.
    """

  @abc.abstractmethod
  def samples_needed(self, state: Any) -> int:
    """Returns how many batches of each client the next round reads."""

  def rows_needed(self, state: Any) -> int:
    """Returns N, the rows that the batches of the next round must have."""
    return self.samples_needed(state)

  def queries(
      self, state: Any, batch_sizes: Optional[np.ndarray] = None
  ) -> int:
    """Returns how many queries each client makes in the next round.

    The clients with fewer batches, by their sizes int [M, N] in epochs, wait
    for the one with the most.
    """
    if batch_sizes is None:
      return self.samples_needed(state)
    return max(1, int(np.count_nonzero(batch_sizes, axis=1).max()))

  def local_rule(self, state: Any) -> Optional[dict[str, Any]]:
    """Returns the fields of a `counter.LocalRule` for the next round, if any.

    None if clients stay where they are.
    """
    del state
    return None

  @abc.abstractmethod
  def cohort(self, drawn: CohortData) -> Any:
    """Returns the value that the program takes, with leading axes M."""

  @abc.abstractmethod
  def messages(self, metrics: Any) -> Messages:
    """Returns what was sent in a round."""

  def row(self, metrics: Any, state: Any) -> dict[str, Any]:
    """Returns a round's numbers by column, None where there is none.

    `state` is that after the round.
    """
    del state
    values = {name: getattr(metrics, name) for name in algorithms.TRAINING}
    if not values['clients_used'] and math.isnan(
        values['loss_before_training']
    ):
      values['loss_before_training'] = None
    return values

  def cut_row(self, state: Any) -> dict[str, Any]:
    """Returns the columns of a last round that the horizon cuts short.

    Clients query, but nothing is sent and nothing changes.
    """
    del state
    return dict(
        update_norm=0.0, clients_used=0, clients_non_finite=0, examples_used=0
    )

  def remark(self, metrics: Any) -> Optional[str]:
    """Returns what is odd about a round, in a sentence, if anything is."""
    del metrics
    return None


def build_code(
    name: str, levels: Optional[int] = None, *, signed: bool = True
) -> codes.Code:
  """Returns a code of `BOUNDED_CODES` or `UNBOUNDED_CODES` of the settings.

  For bounded integers, `levels` is the largest magnitude, and `signed` whether
  they may be negative.
  """
  if name in algorithms.BOUNDED_CODES:
    kind = getattr(codes, algorithms.BOUNDED_CODES[name])
    return kind(levels, signed=signed)
  if name in algorithms.UNBOUNDED_CODES:
    return getattr(codes, algorithms.UNBOUNDED_CODES[name])()
  names = (*algorithms.BOUNDED_CODES, *algorithms.UNBOUNDED_CODES)
  raise ValueError(f'name must be one of {", ".join(names)}, found {name!r}.')
