"""What an exchange of CEAL asks for: a pure function of the server's state."""

import dataclasses
import functools
import math
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tff_localupdate import arguments
from tff_localupdate.ceal import norm_estimation
from tff_localupdate.ceal import schedule as schedule_lib
from tff_localupdate.compression import codes
from tff_localupdate.compression import quantizers

EPOCH_LENGTHS = ('estimated', 'oracle')


class ExchangePlan(NamedTuple):
  """The plan of one exchange; server and clients know all of it.

  Attributes:
    num_queries: int64, the steps of time that it takes; 0 at the horizon.
    sends: bool, whether anything is sent. False for the rest of the horizon, if
      that is too short for the samples of the stage.
    threshold: The least norm that passes the test; 0 if there is no test. It
      and all below are scalars in the dtype of the weights.
    uplink_resolution: The resolution of the clients' messages.
    uplink_radius: The norm to which clients clip.
    downlink_resolution: The resolution of the server's message.
    downlink_radius: The norm to which the server clips.
  """

  num_queries: Any
  sends: Any
  threshold: Any
  uplink_resolution: Any
  uplink_radius: Any
  downlink_resolution: Any
  downlink_radius: Any


@dataclasses.dataclass(frozen=True)
class ExchangeRules:
  """All about exchanges that does not change during a run.

  Attributes:
    schedule: The schedules.
    horizon: T, the number of queries of each client.
    dimension: d.
    dtype: Of the weights, `float32` or `float64`.
    quantizer: Q.
    code: The code whose bits are counted.
    epoch_length: `estimated` or `oracle`.
    clip: Whether clients and server clip.
    reset_stage: Whether an epoch starts with the first stage.
    broadcast_every_exchange: Whether the server also sends its vector if the
      test fails.
  """

  schedule: schedule_lib.Schedule
  horizon: int
  dimension: int
  dtype: str
  quantizer: quantizers.GridQuantizer
  code: codes.Code
  epoch_length: str = 'estimated'
  clip: bool = True
  reset_stage: bool = False
  broadcast_every_exchange: bool = False

  def __post_init__(self):
    """Checks itself; raises ValueError or TypeError."""
    arguments.check_type('schedule', self.schedule, schedule_lib.Schedule)
    arguments.check_count('horizon', self.horizon)
    arguments.check_type('code', self.code, codes.Code)
    arguments.check_choice('epoch_length', self.epoch_length, EPOCH_LENGTHS)
    for name in ('reset_stage', 'broadcast_every_exchange'):
      if self.is_oracle and getattr(self, name):
        raise ValueError(
            f"{name} must not be set with epoch_length='oracle', where each "
            'exchange is an epoch.'
        )

  @property
  def is_oracle(self) -> bool:
    """Whether the length of an epoch comes from the true norm."""
    return self.epoch_length == 'oracle'

  @functools.cached_property
  def table(self) -> schedule_lib.StageTable:
    """The schedules by stage."""
    return self.schedule.table(self.horizon, self.dimension)

  def plan(
      self, stage: tf.Tensor, time_used: tf.Tensor, true_norm: tf.Tensor
  ) -> ExchangePlan:
    """Returns the plan of an exchange.

    For `estimated` all is as `schedule.Schedule` has it for stage j. For
    `oracle`, with y = |grad f(x^(k))| known: t_k samples, tau = y / 4 and B = y
    in the place of tau_j and B_j, s_j = t_k in gamma_j, and j = 1 in the log of
    G_j. There is no test. [inferred; the paper has t_k only]

    Args:
      stage: j, an int64 scalar.
      time_used: t, an int64 scalar.
      true_norm: |grad f(x^(k))|, a scalar; for `oracle` only.
    """
    wanted, scalars = (
        self._oracle_scalars(true_norm)
        if self.is_oracle
        else self._stage_scalars(stage)
    )
    left = self.horizon - time_used
    scalars = [tf.cast(scalar, self.dtype) for scalar in scalars]
    plan = ExchangePlan(
        tf.minimum(wanted, left), tf.logical_and(wanted <= left, left > 0),
        *scalars,
    )
    if self.clip:
      return plan
    infinity = tf.constant(np.inf, self.dtype)
    return plan._replace(uplink_radius=infinity, downlink_radius=infinity)

  def _stage_scalars(self, stage):
    # An index in brackets would have to be a constant for XLA.
    wanted, *scalars = [
        tf.gather(tf.constant(column), stage) for column in self.table
    ]
    return wanted, scalars

  def _oracle_scalars(self, true_norm):
    schedule = self.schedule
    wanted = norm_estimation.oracle_epoch_length(
        true_norm, schedule.noise_scale, schedule.num_clients, self.horizon + 1
    )
    norm = tf.cast(true_norm, tf.float64)
    deviation = schedule.noise_scale / tf.sqrt(tf.cast(wanted, tf.float64))
    log = math.log(4.0 * schedule.num_clients / schedule.failure_probability)
    spread = schedule_lib.noise_bound(1.0, 1, log, self.dimension)
    return wanted, [
        tf.constant(0.0, tf.float64),
        schedule.uplink_resolution * deviation,
        norm + spread * deviation,
        schedule.downlink_resolution * norm / 4.0,
        norm + norm / 4.0,
    ]
