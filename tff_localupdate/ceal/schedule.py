"""The schedules of CEAL: what each stage of the norm estimation asks for.

Plain Python in double precision, so that the host that draws the samples and
the graph that uses them can never disagree about their number.
"""

import dataclasses
import math
from typing import NamedTuple

import numpy as np

from tff_localupdate import arguments


class StageTable(NamedTuple):
  """The schedules by stage: entry j of each is that of stage j.

  Entry 0 is not used. The last stage is the first one that has more samples
  than the horizon has steps, so no exchange gets further.

  Attributes:
    num_samples: s_j, int64.
    threshold: 4 tau_j, the least norm that passes the test.
    uplink_resolution: gamma_j.
    uplink_radius: B_j + G_j, to which clients clip.
    downlink_resolution: phi_j.
    downlink_radius: B_j + tau_j, to which the server clips.
  """

  num_samples: np.ndarray
  threshold: np.ndarray
  uplink_resolution: np.ndarray
  uplink_radius: np.ndarray
  downlink_resolution: np.ndarray
  downlink_radius: np.ndarray


@dataclasses.dataclass(frozen=True)
class Schedule:
  """The schedules by stage j = 1, 2, ...

      tau_j   = 3 * 2^-(j+1)
      s_j     = ceil(c sigma^2 log(16 M j^2 / delta) 4^j / M)
      B_j     = min(5 tau_(j-1), 1)
      G_j     = (4 sigma / sqrt(s_j)) (1 + sqrt(log(4 M j^2 / delta) / (2 d)))
      gamma_j = gamma_0 sigma / sqrt(s_j)
      phi_j   = phi_0 tau_j

  The defaults are the theory's; with them and a realistic sigma the first stage
  takes hundreds of samples. A smaller c gives few and short messages.

  Source: arXiv 2301.08869; that log is the natural one, and that G_j has the
  log and its 1/(2 d) under one root, is inferred.

  Attributes:
    num_clients: M.
    noise_scale: sigma, above 0; sigma^2 bounds the expected squared norm of the
      noise of the gradient of one query.
    failure_probability: delta, in (0, 1).
    uplink_resolution: gamma_0, in (0, 1).
    downlink_resolution: phi_0, in (0, 1).
    sample_constant: c; 40 in the paper.
    first_stage: The stage that a run starts with; 1 in the paper.
    threshold_factor: The test passes from this many times tau_j; 4 is inferred.
  """

  num_clients: int
  noise_scale: float
  failure_probability: float = 0.1
  uplink_resolution: float = 0.9
  downlink_resolution: float = 0.9
  sample_constant: float = 40.0
  first_stage: int = 1
  threshold_factor: float = 4.0

  def __post_init__(self):
    arguments.check_count('num_clients', self.num_clients)
    arguments.check_count('first_stage', self.first_stage)
    for name in ('noise_scale', 'sample_constant', 'threshold_factor'):
      arguments.check_positive(name, getattr(self, name))
    for name in (
        'failure_probability', 'uplink_resolution', 'downlink_resolution'
    ):
      value = getattr(self, name)
      arguments.check_positive(name, value)
      if value >= 1.0:
        raise ValueError(f'{name} must be a number below 1, found {value!r}.')
    if not self.num_samples(self.first_stage):  # Its square has underflowed.
      raise ValueError(
          'noise_scale must be large enough for a sample in the first stage, '
          f'found {self.noise_scale!r}.'
      )

  def num_samples(self, stage: int) -> int:
    """Returns s_j, the number of samples of each client."""
    log = math.log(
        16.0 * self.num_clients * stage**2 / self.failure_probability
    )
    samples = self.sample_constant * self.noise_scale**2 * log * 4.0**stage
    return math.ceil(samples / self.num_clients)

  def accuracy(self, stage: int) -> float:
    """Returns tau_j, the bound on the error of the mean; j may be 0."""
    return 3.0 * 2.0 ** -(stage + 1)

  def gradient_bound(self, stage: int) -> float:
    """Returns B_j, the bound on the norm of the gradient."""
    return min(5.0 * self.accuracy(stage - 1), 1.0)

  def noise_bound(self, stage: int, dimension: int) -> float:
    """Returns G_j, the bound on the norm of a client's noise."""
    log = math.log(4.0 * self.num_clients * stage**2 / self.failure_probability)
    return noise_bound(
        self.noise_scale, self.num_samples(stage), log, dimension
    )

  def uplink_accuracy(self, stage: int) -> float:
    """Returns gamma_j, the resolution of the clients' messages."""
    return (
        self.uplink_resolution
        * self.noise_scale
        / math.sqrt(self.num_samples(stage))
    )

  def downlink_accuracy(self, stage: int) -> float:
    """Returns phi_j, the resolution of the server's messages."""
    return self.downlink_resolution * self.accuracy(stage)

  def last_stage(self, horizon: int) -> int:
    """Returns the first stage, from `first_stage`, with s_j above `horizon`."""
    stage = self.first_stage
    while self.num_samples(stage) <= horizon:
      stage += 1
    return stage

  def table(self, horizon: int, dimension: int) -> StageTable:
    """Returns the schedules of all stages that a run can reach."""
    stages = range(1, self.last_stage(horizon) + 1)

    def column(entry, dtype=np.float64):
      return np.array([0, *map(entry, stages)], dtype)

    return StageTable(
        # No more than one above T is told from T + 1.
        num_samples=column(
            lambda j: min(self.num_samples(j), horizon + 1), np.int64
        ),
        threshold=column(lambda j: self.threshold_factor * self.accuracy(j)),
        uplink_resolution=column(self.uplink_accuracy),
        uplink_radius=column(
            lambda j: self.gradient_bound(j) + self.noise_bound(j, dimension)
        ),
        downlink_resolution=column(self.downlink_accuracy),
        downlink_radius=column(
            lambda j: self.gradient_bound(j) + self.accuracy(j)
        ),
    )


def noise_bound(
    noise_scale: float, num_samples: int, log: float, dimension: int
) -> float:
  """Returns (4 sigma / sqrt(n)) (1 + sqrt(log / (2 d))), see `Schedule`."""
  spread = 1.0 + math.sqrt(log / (2.0 * dimension))
  return 4.0 * noise_scale / math.sqrt(num_samples) * spread


def padded_size(num_samples: int) -> int:
  """Returns the rows for so many samples: a power of two from 16, so few."""
  return max(16, 1 << max(num_samples - 1, 0).bit_length())


def default_step_size(smoothness: float) -> float:
  """Returns 1 / (5 beta), the largest step size that the theory allows.

  Raises ValueError unless beta, of the global objective, is above 0.
  """
  arguments.check_positive('smoothness', smoothness)
  return 1.0 / (5.0 * smoothness)
