"""The columns of metrics.csv that algorithms fill; see `experiment.records`.

What the settings of every algorithm tell of it.

Settings of LocalUpdate and its relatives (paper 1).

Settings of CEAL and its rivals, which run until a horizon of queries.

Algorithms by name. Holds import paths, so it needs no TensorFlow.
"""

import dataclasses
import importlib
from typing import Any, Callable, ClassVar, Optional, TypeVar

from baselines.settings import schema
from baselines.settings.schema import setting
from tff_localupdate import theta as theta_lib

TRAINING = (
    'client_learning_rate',
    'server_learning_rate',
    'loss_before_training',
    'update_norm',
    'clients_used',
    'clients_empty',
    'clients_non_finite',
    'examples_used',
)
DECAY = ('average_loss', 'client_decays', 'server_decays')
MESSAGES = (
    'num_queries',
    'time_used',
    'sent',
    'uplink_bits',
    'downlink_bits',
    'cumulative_uplink_bits',
    'cumulative_downlink_bits',
    'clients_not_sent',
)
CEAL = (
    'epoch',
    'stage',
    'stepped',
    'estimated_gradient_norm',
    'true_gradient_norm',
    'threshold',
    'rounding_norm',
    'passes_by_rounding',
)


_Config = TypeVar('_Config', bound='AlgorithmConfig')


@dataclasses.dataclass(frozen=True)
class AlgorithmConfig:
  """Settings of an algorithm; no setting is common to all.

  Attributes:
    RATES: The settings that are numbers in the state of the process, so that
      another value needs no other program.
    OBSERVED: The settings that say what is observed of a run, and so are no
      part of its program either.
  """

  RATES: ClassVar[tuple[str, ...]] = ()
  OBSERVED: ClassVar[tuple[str, ...]] = ()

  def __post_init__(self) -> None:
    schema.check_settings(self)

  @property
  def extra_columns(self) -> tuple[str, ...]:
    """The columns of metrics.csv besides those of all algorithms."""
    return ()

  @property
  def num_rounds(self) -> Optional[int]:
    """How many rounds it takes; None if its settings do not tell."""
    return None

  @property
  def needs_all_examples(self) -> bool:
    """Whether a round also reads all examples of its clients."""
    return False

  @property
  def counts_regret(self) -> bool:
    """Whether the regret of all queries is counted."""
    return False

  @property
  def has_data_in_program(self) -> bool:
    """Whether data are part of the program, or decide the shapes in it."""
    return False

  def compiled_settings(self: _Config) -> _Config:
    """Returns these settings as far as the program depends on them."""
    return dataclasses.replace(
        self, **dict.fromkeys(self.RATES, 1.0), **dict.fromkeys(self.OBSERVED)
    )


# The quantizers of clients' messages, and the code of each by default.
QUANTIZER_DEFAULTS: dict[str, Optional[str]] = {
    'none': None,
    'grid_vector': 'signed_unary',
    'grid_coordinate': 'signed_unary',
    'qsgd': 'fixed_width',
    'uniform': 'fixed_width',
}
# For each client optimizer, the settings that it reads and their defaults.
_CLIENT_OPTIMIZERS: dict[str, dict[str, float]] = {
    'sgd': {},
    'momentum': {'client_momentum': 0.9},
    'adagrad': {'client_initial_accumulator': 0.1, 'client_epsilon': 1e-7},
}


@dataclasses.dataclass(frozen=True)
class LocalConfig(AlgorithmConfig):
  """Settings that LocalUpdate and its relatives have in common."""

  RATES: ClassVar[tuple[str, ...]] = ('client_learning_rate',)

  client_learning_rate: float = setting(
      0.05, 'gamma, the rate of the local steps; 0 is legal.', minimum=0.0
  )
  loss_before_training: Optional[str] = setting(
      None,
      "What the round's loss before training is computed on: all examples "
      'drawn for the round (drawn), those of the first local step, which costs '
      'nothing (first_batch), or all data of each client (full). By default '
      'drawn; full if the rates decay by it.',
      choices=('drawn', 'first_batch', 'full'),
  )
  uplink_quantizer: str = setting(
      'none',
      'How clients quantize what they send, and the server takes the mean of: '
      'not at all, on a grid of CEAL whose resolution bounds the norm of the '
      'error (grid_vector) or that of each coordinate (grid_coordinate), by '
      'QSGD, or uniformly between the least and the largest coordinate. '
      'Rounding is drawn by a digest of the message, so where a last bit '
      'differs (other jit or dtype) all of it does.',
      choices=tuple(QUANTIZER_DEFAULTS),
  )
  quantizer_resolution: Optional[float] = setting(
      None,
      'The resolution of a grid, or the levels s of qsgd and uniform.',
      above=0.0,
  )
  quantizer_code: Optional[str] = setting(
      None,
      'The code whose bits are counted; by default signed_unary for grids, '
      'fixed_width otherwise.',
      choices=('fixed_width', 'signed_unary', 'elias_gamma', 'run_length'),
  )

  def __post_init__(self) -> None:
    super().__post_init__()
    self._check_quantizer()

  @property
  def needs_all_examples(self) -> bool:
    return self.loss_before_training == 'full'

  @property
  def extra_columns(self) -> tuple[str, ...]:
    return () if self.uplink_quantizer == 'none' else ('uplink_bits',)

  def default_loss(self, decays: bool) -> str:
    """Returns what `loss_before_training` is where it is not given.

    Args:
      decays: Whether the rates decay by it.
    """
    return 'full' if decays else 'drawn'

  def _check_quantizer(self) -> None:
    name, resolution = self.uplink_quantizer, self.quantizer_resolution
    code = QUANTIZER_DEFAULTS[name]
    if code is None:
      for unused in ('quantizer_resolution', 'quantizer_code'):
        if getattr(self, unused) is not None:
          raise ValueError(
              f"{unused} would be ignored: uplink_quantizer is 'none'."
          )
      return
    schema.fill_setting(self, 'quantizer_code', code)
    if resolution is None:
      raise ValueError(
          f'quantizer_resolution must be given with uplink_quantizer {name!r}, '
          'found None.'
      )
    if code == 'fixed_width' and not resolution.is_integer():
      raise ValueError(
          'quantizer_resolution must be a whole number of levels with '
          f'uplink_quantizer {name!r}, found {resolution!r}.'
      )
    if code != 'fixed_width' and self.quantizer_code == 'fixed_width':
      raise ValueError(
          "quantizer_code must not be 'fixed_width' with a grid, whose "
          'integers have no bound.'
      )


@dataclasses.dataclass(frozen=True)
class _StepsConfig(LocalConfig):
  """Settings of how local steps are taken; the defaults are the paper's."""

  client_optimizer: str = setting(
      'sgd',
      'What moves a client between its gradients; starts anew each round.',
      choices=tuple(_CLIENT_OPTIMIZERS),
  )
  client_momentum: Optional[float] = setting(
      None, 'momentum: heavy ball; by default 0.9.', minimum=0.0, below=1.0
  )
  client_initial_accumulator: Optional[float] = setting(
      None, 'adagrad: start of the sum of squares; by default 0.1.',
      minimum=0.0,
  )
  client_epsilon: Optional[float] = setting(
      None, 'adagrad: added to the sum of squares; by default 1e-7.', above=0.0
  )
  proximal_strength: float = setting(
      0.0, 'mu of a term mu/2 |x - x_t|^2 in the local loss.', minimum=0.0
  )

  def __post_init__(self) -> None:
    super().__post_init__()
    for optimizer, defaults in _CLIENT_OPTIMIZERS.items():
      for name, default in defaults.items():
        if optimizer == self.client_optimizer:
          schema.fill_setting(self, name, default)
        elif getattr(self, name) is not None:
          raise ValueError(
              f'{name} is a setting of {optimizer} and would be ignored: '
              f'client_optimizer is {self.client_optimizer!r}.'
          )

  @property
  def step_options(self) -> dict[str, schema.Value]:
    """The options as arguments of `local_steps.LocalSteps`."""
    own = {
        name.removeprefix('client_'): getattr(self, name)
        for name in _CLIENT_OPTIMIZERS[self.client_optimizer]
    }
    return {
        'optimizer': self.client_optimizer,
        'proximal_strength': self.proximal_strength,
        **own,
    }


@dataclasses.dataclass(frozen=True)
class LocalUpdateConfig(_StepsConfig):
  """Settings of LocalUpdate (Algorithms 1 and 2)."""

  theta: str = setting(
      '1:10',
      'Weights of the local gradients: 1:K (all K steps count alike), kK (only '
      'the last of K steps counts), or weights separated by commas.',
  )
  step_factors: Optional[str] = setting(
      None,
      'What gamma is multiplied by in each of the K local steps, K numbers '
      'separated by commas; by default 1 each.',
  )

  def __post_init__(self) -> None:
    super().__post_init__()
    canonical = str(theta_lib.parse_theta(self.theta))
    object.__setattr__(self, 'theta', canonical)
    if self.step_factors is not None:
      _check_factors(self.step_factors, self.num_steps)

  @property
  def num_steps(self) -> int:
    """K(Theta), the number of mini-batches that a client draws per round."""
    return theta_lib.parse_theta(self.theta).num_steps

  @property
  def step_options(self) -> dict[str, schema.Value]:
    factors = self.step_factors
    if factors is not None:
      factors = tuple(map(float, factors.split(',')))
    return {**super().step_options, 'step_factors': factors}


@dataclasses.dataclass(frozen=True)
class MamlConfig(LocalConfig):
  """Settings of K-MAML, with second-order gradients."""

  num_steps: int = setting(
      5,
      'K, the local steps that the gradient goes through; first-order MAML is '
      'local_update with theta k(K+1).',
      minimum=1,
  )


@dataclasses.dataclass(frozen=True)
class EpochsConfig(_StepsConfig):
  """Settings of LocalUpdate whose clients go through their data in epochs."""

  num_epochs: int = setting(
      1, 'E, how often a client goes through its data in a round.', minimum=1
  )

  def __post_init__(self) -> None:
    super().__post_init__()
    if self.loss_before_training == 'full':
      raise ValueError(
          "loss_before_training must not be 'full' with epochs: what is drawn "
          'already is all data of each client.'
      )

  @property
  def has_data_in_program(self) -> bool:
    return True  # The largest client decides how many batches there are.

  def default_loss(self, decays: bool) -> str:
    return 'drawn'


def _check_factors(text: str, num_steps: int) -> None:
  try:
    factors = [float(part) for part in text.split(',')]
  except ValueError:
    factors = []
  is_sound = all(0.0 <= factor < float('inf') for factor in factors)
  if len(factors) != num_steps or not is_sound:
    raise ValueError(
        f'step_factors must be {num_steps} finite numbers that are not '
        f'negative, one for each local step, found {text!r}.'
    )


# What the stages of CEAL are made of; an oracle needs none.
_STAGES = ('sample_constant', 'first_stage', 'threshold_factor')
# Codes carry integers of 31 bits, and queries are counted in as many.
_MOST = 2**31
CEAL_CODES = ('signed_unary', 'elias_gamma', 'run_length')
QSGD_CODES = ('fixed_width', *CEAL_CODES)


@dataclasses.dataclass(frozen=True)
class HorizonConfig(AlgorithmConfig):
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
    return MESSAGES

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
    return (*MESSAGES, *CEAL)

  @property
  def has_data_in_program(self) -> bool:
    return self.epoch_length == 'oracle'


@dataclasses.dataclass(frozen=True)
class AlgorithmEntry:
  """One algorithm.

  Attributes:
    config_type: The type of its settings, an `AlgorithmConfig`.
    builder: `module:function` of the builder, called with the settings and a
      `driver.BuildContext`; returns a `driver.Driver`.
    has_server_optimizer: Whether there is a server optimizer to be chosen, and
      both rates may change from round to round.
  """

  config_type: type
  builder: str
  has_server_optimizer: bool = False

  @property
  def has_horizon(self) -> bool:
    """Whether a run ends by itself, at a horizon of queries."""
    return issubclass(self.config_type, HorizonConfig)


_RIVALS = 'baselines.algorithms.rival_drivers'

ALGORITHMS: dict[str, AlgorithmEntry] = {
    'local_update': AlgorithmEntry(
        LocalUpdateConfig,
        'baselines.algorithms.local_update:build_local_update',
        has_server_optimizer=True,
    ),
    'local_update_epochs': AlgorithmEntry(
        EpochsConfig,
        'baselines.algorithms.local_update:build_epochs',
        has_server_optimizer=True,
    ),
    'k_maml': AlgorithmEntry(
        MamlConfig,
        'baselines.algorithms.local_update:build_maml',
        has_server_optimizer=True,
    ),
    'ceal': AlgorithmEntry(
        CealConfig, 'baselines.algorithms.ceal:build'
    ),
    'minibatch_sgd': AlgorithmEntry(
        MinibatchSgdConfig, f'{_RIVALS}:build_minibatch_sgd'
    ),
    'fed_avg': AlgorithmEntry(
        FedAvgConfig, f'{_RIVALS}:build_fed_avg'
    ),
    'fed_paq': AlgorithmEntry(
        FedPaqConfig, f'{_RIVALS}:build_fed_paq'
    ),
    'fed_com': AlgorithmEntry(
        FedComConfig, f'{_RIVALS}:build_fed_com'
    ),
}


def algorithm_name(config: Any) -> str:
  """Returns the name of the algorithm whose settings `config` holds."""
  for name, entry in ALGORITHMS.items():
    if type(config) is entry.config_type:
      return name
  raise ValueError(
      f'algorithm must be a config of one of {", ".join(ALGORITHMS)}; found '
      f'{type(config).__name__}.'
  )


def algorithm_entry(config: Any) -> AlgorithmEntry:
  """Returns the entry of the algorithm whose settings `config` holds."""
  return ALGORITHMS[algorithm_name(config)]


def load_builder(config: Any) -> Callable[..., Any]:
  """Imports and returns the builder for `config`; this loads TensorFlow."""
  module, _, function = algorithm_entry(config).builder.partition(':')
  return getattr(importlib.import_module(module), function)
