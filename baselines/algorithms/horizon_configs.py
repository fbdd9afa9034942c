"""Settings of CEAL and its rivals, which run until a horizon of queries."""

import dataclasses
from typing import ClassVar, Optional

from baselines.algorithms import algorithm_config
from baselines.algorithms import columns
from baselines.settings import setting

# What the stages of CEAL are made of; an oracle needs none.
_STAGES = ('sample_constant', 'first_stage', 'threshold_factor')
# Codes carry integers of 31 bits, and queries are counted in as many.
_MOST = 2**31
CEAL_CODES = ('signed_unary', 'elias_gamma', 'run_length')
QSGD_CODES = ('fixed_width', *CEAL_CODES)


@dataclasses.dataclass(frozen=True)
class HorizonConfig(algorithm_config.AlgorithmConfig):
  """Settings that CEAL and its rivals have in common.

  Attributes:
    QUERIES_MOVE: Whether clients move between the queries of a round.
  """

  RATES: ClassVar[tuple[str, ...]] = ('step_size',)
  OBSERVED: ClassVar[tuple[str, ...]] = ('regret_every',)
  QUERIES_MOVE: ClassVar[bool] = True

  horizon: int = setting(
      2000, 'T, the queries of each client; the run ends with them.', minimum=1,
      below=_MOST,
  )
  step_size: float = setting(0.1, 'eta, the rate of all steps.', above=0.0)
  regret_every: Optional[int] = setting(
      None,
      'Evaluate f for the cumulative regret at the middle of every so many '
      'consecutive queries of a client that moves between queries; 1 is exact '
      'and, for the tasks whose f can be evaluated so, the default.',
      minimum=1,
  )

  @property
  def extra_columns(self) -> tuple[str, ...]:
    return columns.MESSAGES

  @property
  def counts_regret(self) -> bool:
    return self.regret_every is not None


@dataclasses.dataclass(frozen=True)
class _RivalConfig(HorizonConfig):
  """Settings that all rivals of CEAL have."""

  local_steps: int = setting(
      100, 'L, the queries of a client between two messages.', minimum=1
  )

  def __post_init__(self) -> None:
    super().__post_init__()
    if self.QUERIES_MOVE and (self.regret_every or 1) > self.local_steps:
      raise ValueError(
          f'regret_every must be at most local_steps, {self.local_steps}, '
          f'found {self.regret_every!r}.'
      )

  @property
  def num_rounds(self) -> int:
    """Rounds until the horizon; the last one may be cut short."""
    return -(-self.horizon // self.local_steps)


@dataclasses.dataclass(frozen=True)
class MinibatchSgdConfig(_RivalConfig):
  """Settings of Minibatch-SGD."""

  QUERIES_MOVE: ClassVar[bool] = False


@dataclasses.dataclass(frozen=True)
class FedAvgConfig(_RivalConfig):
  """Settings of FedAvg."""


@dataclasses.dataclass(frozen=True)
class FedPaqConfig(_RivalConfig):
  """Settings of FedPAQ."""

  quantization_levels: int = setting(
      3, 's, the levels of QSGD.', minimum=1, below=_MOST
  )
  code: str = setting(
      'fixed_width', 'The code whose bits are counted.', choices=QSGD_CODES
  )


@dataclasses.dataclass(frozen=True)
class FedComConfig(FedPaqConfig):
  """Settings of FedCOM."""

  RATES: ClassVar[tuple[str, ...]] = ('step_size', 'server_factor')

  server_factor: float = setting(
      10.0, 'The server goes so many times step_size.', above=0.0
  )


@dataclasses.dataclass(frozen=True)
class CealConfig(HorizonConfig):
  """Settings of CEAL. The defaults are the theory's."""

  QUERIES_MOVE: ClassVar[bool] = False

  step_size: Optional[float] = setting(
      None,
      'eta, the rate of all steps; by default 1 / (5 beta), with beta the '
      'smoothness of f, for the tasks whose f is known as a formula.',
      above=0.0,
  )
  noise_scale: Optional[float] = setting(
      None,
      'sigma: its square bounds the expected squared norm of the noise of one '
      'query; by default as measured at the initial point, for the tasks whose '
      'f is known as a formula.',
      above=1e-12,
      below=1e12,
  )
  failure_probability: float = setting(0.1, 'delta.', above=0.0, below=1.0)
  uplink_resolution: float = setting(
      0.9, "gamma_0, the resolution of clients' messages.", above=0.0,
      below=1.0,
  )
  downlink_resolution: float = setting(
      0.9, "phi_0, the resolution of the server's messages.", above=0.0,
      below=1.0,
  )
  sample_constant: float = setting(
      40.0, 'The constant in s_j, the samples of stage j.', above=1e-12,
      below=1e12,
  )
  first_stage: int = setting(
      1, 'The stage j of the first epoch.', minimum=1, below=100
  )
  threshold_factor: float = setting(
      4.0, 'A norm passes from so many times tau_j.', above=0.0
  )
  grid: str = setting(
      'vector', 'What resolutions bound.', choices=('vector', 'coordinate')
  )
  epoch_length: str = setting(
      'estimated',
      'How many samples an epoch takes: as the estimated norm of the gradient '
      'asks for, or as the true one does, which no algorithm knows (oracle).',
      choices=('estimated', 'oracle'),
  )
  clip: bool = setting(True, 'Clip what is sent, to the known bounds.')
  reset_stage: bool = setting(
      False, 'Start each epoch with the first stage again.'
  )
  broadcast_every_exchange: bool = setting(
      False, 'Broadcast the vector also if it is not used.'
  )
  code: str = setting(
      'signed_unary', 'The code whose bits are counted.', choices=CEAL_CODES
  )

  def __post_init__(self) -> None:
    super().__post_init__()
    if self.epoch_length != 'oracle':
      return
    for field in dataclasses.fields(self):
      value = getattr(self, field.name)
      if field.name in _STAGES and value != field.default:
        raise ValueError(
            f'{field.name} would be ignored: epoch_length is '
            f'{self.epoch_length!r}, found {value!r}.'
        )

  @property
  def extra_columns(self) -> tuple[str, ...]:
    return (*columns.MESSAGES, *columns.CEAL)

  @property
  def has_data_in_program(self) -> bool:
    return self.epoch_length == 'oracle'
