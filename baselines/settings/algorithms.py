"""The algorithms by name, and the settings of each; needs no TensorFlow.

LocalUpdate and its relatives (paper 1), CEAL (paper 2), and CEAL's rivals,
which are members of LocalUpdate under their own names. `ALGORITHMS`, at the
end, is the registry. To add an algorithm, write its settings and its entry
here and its builder in a module of `baselines.algorithms`.
"""

import dataclasses
import importlib
from typing import Any, Callable, ClassVar, NamedTuple, Optional, TypeVar

from baselines.settings import schema
from baselines.settings.schema import setting
from tff_localupdate import optimizer_settings
from tff_localupdate import theta as theta_lib

# The columns of metrics.csv that rounds fill; see `baselines.results.records`.
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
    DEFAULT_HORIZON: The horizon of a run where neither that nor the number of
      rounds is given; None if such a run has the usual number of rounds.
    TAKES_ROUNDS_AND_HORIZON: Whether a run may have both and ends with
      whichever comes first, as rounds and queries cannot be converted
      beforehand.
    COUNTS_REGRET: Whether the regret is counted unless told otherwise, on tasks
      whose f is known.
    QUERIES_MOVE: Whether clients move between the queries of a round.
    PLANS_BY_HORIZON: Whether its process depends on the horizon.
  """

  RATES: ClassVar[tuple[str, ...]] = ()
  DEFAULT_HORIZON: ClassVar[Optional[int]] = None
  TAKES_ROUNDS_AND_HORIZON: ClassVar[bool] = False
  COUNTS_REGRET: ClassVar[bool] = False
  QUERIES_MOVE: ClassVar[bool] = True
  PLANS_BY_HORIZON: ClassVar[bool] = False

  def __post_init__(self) -> None:
    schema.check_settings(self)

  @property
  def extra_columns(self) -> tuple[str, ...]:
    """The columns of metrics.csv besides those of all algorithms."""
    return ()

  @property
  def queries_per_round(self) -> Optional[int]:
    """The queries of each client in a round; None if they are not constant."""
    return None

  @property
  def process_rates(self) -> dict[str, Optional[float]]:
    """The rates by the names that the process has for them."""
    return {name: getattr(self, name) for name in self.RATES}

  @property
  def needs_all_examples(self) -> bool:
    """Whether a round also reads all examples of its clients."""
    return False

  @property
  def has_data_in_program(self) -> bool:
    """Whether data are part of the program, or decide the shapes in it."""
    return False

  def compiled_settings(self: _Config) -> _Config:
    """Returns these settings as far as the program depends on them."""
    return dataclasses.replace(self, **dict.fromkeys(self.RATES, 1.0))


class QuantizerEntry(NamedTuple):
  """A quantizer of messages: a class in `compression.quantizers`.

  Attributes:
    code: The code by default.
    takes_levels: Whether its resolution is a whole number of levels, which
      bounds the integers.
    is_signed: Whether its integers may be negative.
  """

  factory: str
  code: str
  arguments: tuple[str, ...] = ()
  takes_levels: bool = False
  is_signed: bool = True


QUANTIZERS: dict[str, QuantizerEntry] = {
    'grid_vector': QuantizerEntry('GridQuantizer', 'signed_unary', ('vector',)),
    'grid_coordinate': QuantizerEntry(
        'GridQuantizer', 'signed_unary', ('coordinate',)
    ),
    'qsgd': QuantizerEntry('QsgdQuantizer', 'fixed_width', takes_levels=True),
    'uniform': QuantizerEntry(
        'UniformQuantizer', 'fixed_width', takes_levels=True, is_signed=False
    ),
}
# The codes by name, and their classes in `compression.codes`: those of bounded
# integers, which take the bound, and those of any.
BOUNDED_CODES: dict[str, str] = {'fixed_width': 'FixedWidthCode'}
UNBOUNDED_CODES: dict[str, str] = {
    'signed_unary': 'SignedUnaryCode',
    'elias_gamma': 'EliasGammaCode',
    'run_length': 'RunLengthCode',
}
_CODES = (*BOUNDED_CODES, *UNBOUNDED_CODES)
# Codes carry integers of 31 bits.
_MOST_LEVELS = 2**31


@dataclasses.dataclass(frozen=True)
class LocalConfig(AlgorithmConfig):
  """Settings that LocalUpdate and its relatives have in common."""

  RATES: ClassVar[tuple[str, ...]] = ('client_learning_rate',)

  client_learning_rate: float = setting(
      0.05, 'gamma, the rate of the local steps; 0 is legal.', minimum=0.0
  )
  loss_before_training: Optional[str] = setting(
      None,
      "The examples on which the round's loss before training is computed: "
      'all that are drawn for the round (drawn), those of the first local '
      'step, which costs nothing (first_batch), or all data of each client '
      '(full). The default is drawn, or full if the rates decay by this loss.',
      choices=('drawn', 'first_batch', 'full'),
  )
  uplink_quantizer: str = setting(
      'none',
      'How clients quantize their messages, of which the server takes the '
      'mean: none; grid_vector or grid_coordinate, a grid as in CEAL whose '
      'resolution bounds the norm of the error or the error of each '
      'coordinate; qsgd; or uniform, between the least and the largest '
      'coordinate. Rounding is drawn from a digest of the message, so one '
      'different bit in it (other jit or dtype) changes the whole rounding.',
      choices=('none', *QUANTIZERS),
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
      choices=_CODES,
  )

  def __post_init__(self) -> None:
    super().__post_init__()
    self._check_quantizer()

  @property
  def needs_all_examples(self) -> bool:
    return self.loss_before_training == 'full'

  def default_loss(self, decays: bool) -> str:
    """Returns `loss_before_training` if not given, where rates decay or not."""
    return 'full' if decays else 'drawn'

  def _check_quantizer(self) -> None:
    name, resolution = self.uplink_quantizer, self.quantizer_resolution
    if name == 'none':
      for unused in ('quantizer_resolution', 'quantizer_code'):
        if getattr(self, unused) is not None:
          raise ValueError(
              f"{unused} would be ignored: uplink_quantizer is 'none'."
          )
      return
    entry = QUANTIZERS[name]
    schema.fill_setting(self, 'quantizer_code', entry.code)
    if resolution is None:
      raise ValueError(
          f'quantizer_resolution must be given with uplink_quantizer {name!r}, '
          'found None.'
      )
    if entry.takes_levels and not resolution.is_integer():
      raise ValueError(
          'quantizer_resolution must be a whole number of levels with '
          f'uplink_quantizer {name!r}, found {resolution!r}.'
      )
    if not entry.takes_levels and self.quantizer_code in BOUNDED_CODES:
      raise ValueError(
          f'quantizer_code must not be {self.quantizer_code!r} with a grid, '
          'whose integers have no bound.'
      )


def _client_optimizer_fields() -> list[tuple[str, Any, Any]]:
  """Returns the settings of all client optimizers as fields of a dataclass."""
  fields = {}
  for optimizer, settings in optimizer_settings.CLIENT.items():
    for name, own in settings.items():  # Optimizers may share a name.
      field = (f'client_{name}', *schema.own_setting(optimizer, own))
      fields.setdefault(name, field)
  return list(fields.values())


@dataclasses.dataclass(frozen=True)
class _OptimizerChoice(LocalConfig):
  """The choice of the client optimizer."""

  client_optimizer: str = setting(
      'sgd',
      'What moves a client between its gradients; starts anew each round.',
      choices=tuple(optimizer_settings.CLIENT),
  )


@dataclasses.dataclass(frozen=True)
class _StepsConfig(
    dataclasses.make_dataclass(
        '_OptimizerSettings', _client_optimizer_fields(),
        bases=(_OptimizerChoice,), frozen=True,
    )
):
  """Settings of how local steps are taken; the defaults are the paper's."""

  proximal_strength: float = setting(
      0.0, 'mu of a term mu/2 |x - x_t|^2 in the local loss.', minimum=0.0
  )

  def __post_init__(self) -> None:
    super().__post_init__()
    schema.fill_own_settings(
        self, 'client_optimizer', optimizer_settings.CLIENT,
        lambda _, name: f'client_{name}',
    )

  @property
  def step_options(self) -> dict[str, schema.Value]:
    """The options as arguments of `local_steps.LocalSteps`."""
    own = {
        name: getattr(self, f'client_{name}')
        for name in optimizer_settings.CLIENT[self.client_optimizer]
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
      'Factors of gamma in the K local steps: K numbers separated by commas, '
      'by default 1 each.',
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
  def queries_per_round(self) -> int:
    return self.num_steps

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

  @property
  def queries_per_round(self) -> int:
    """The gradients at K + 1 points; products with Hessians do not count."""
    return self.num_steps + 1


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


class Member(NamedTuple):
  """A rival of CEAL as a member of LocalUpdate; the server steps by SGD.

  Its settings are Theta, gamma and the quantizer; `batches_per_step` is how
  many of the batches drawn make one of a local step.
  """

  settings: LocalUpdateConfig
  server_learning_rate: float
  batches_per_step: int = 1


_BOTH_RATES = ('client_learning_rate', 'server_learning_rate')


def _step_size(ties: tuple[str, ...]) -> Any:
  return setting(0.1, 'eta, the rate of all steps.', above=0.0, ties=ties)


@dataclasses.dataclass(frozen=True)
class _MemberConfig(AlgorithmConfig):
  """Settings that all rivals of CEAL have."""

  RATES: ClassVar[tuple[str, ...]] = ('step_size',)
  DEFAULT_HORIZON: ClassVar[Optional[int]] = 2000
  COUNTS_REGRET: ClassVar[bool] = True

  local_steps: int = setting(
      100, 'L, the queries of a client between two messages.', minimum=1
  )
  step_size: float = _step_size(_BOTH_RATES)

  @property
  def queries_per_round(self) -> int:
    return self.local_steps

  @property
  def member(self) -> Member:
    """The same as settings of LocalUpdate."""
    return Member(self._local_update(), self.step_size)

  @property
  def process_rates(self) -> dict[str, Optional[float]]:
    member = self.member
    return {
        'client_learning_rate': member.settings.client_learning_rate,
        'server_learning_rate': member.server_learning_rate,
    }

  def compiled_settings(self) -> Member:
    """Returns the member without its rates: FedCOM runs FedPAQ's program."""
    member = self.member
    return member._replace(
        settings=member.settings.compiled_settings(), server_learning_rate=1.0
    )

  def _local_update(self, **changes: schema.Value) -> LocalUpdateConfig:
    """Returns L steps of SGD, all of whose gradients count, and changes."""
    return LocalUpdateConfig(**{
        'theta': f'1:{self.local_steps}',
        'client_learning_rate': self.step_size,
        'loss_before_training': 'first_batch',
        **changes,
    })


@dataclasses.dataclass(frozen=True)
class MinibatchSgdConfig(_MemberConfig):
  """Settings of Minibatch-SGD: all queries of a round are at one point.

      client m: sends g_m, the mean of the gradients of L queries at x
      server:   x <- x - eta (1/M) sum_m g_m

  LocalUpdate with gamma = 0 and Theta = 1/L, ..., 1/L, computed as a single
  step whose batch are all L. Source: arXiv 2301.08869, section VI.
  """

  QUERIES_MOVE: ClassVar[bool] = False

  step_size: float = _step_size(('server_learning_rate',))

  @property
  def member(self) -> Member:
    settings = self._local_update(theta='1:1', client_learning_rate=0.0)
    return Member(settings, self.step_size, self.local_steps)


@dataclasses.dataclass(frozen=True)
class FedAvgConfig(_MemberConfig):
  """Settings of FedAvg: the mean of the points that clients reach.

      client m: x_m = x; L times: x_m <- x_m - eta g, g queried at x_m
      server:   x <- (1/M) sum_m x_m

  LocalUpdate with Theta_{1:L} and gamma = eta. Source: McMahan et al., AISTATS
  2017, arXiv 1602.05629. Departures: clients of different sizes count alike.
  """


@dataclasses.dataclass(frozen=True)
class FedPaqConfig(_MemberConfig):
  """Settings of FedPAQ: FedAvg with quantized messages.

      client m: reaches x_m as in FedAvg; sends Q_s(x_m - x)
      server:   x <- x + (1/M) sum_m Q_s(x_m - x)

  with QSGD as Q_s, whose message is a float and d integers of magnitude at most
  s. What is quantized here is the sum of gradients (x - x_m) / eta, which is
  the same, as Q_s(c v) = c Q_s(v). Source: Reisizadeh et al., AISTATS 2020,
  arXiv 1909.13014, with all clients in each round. How its bits are counted in
  arXiv 2301.08869 is inferred.
  """

  quantization_levels: int = setting(
      3, 's, the levels of QSGD.', minimum=1, below=_MOST_LEVELS
  )
  code: str = setting(
      'fixed_width', 'The code whose bits are counted.', choices=_CODES
  )

  @property
  def member(self) -> Member:
    settings = self._local_update(
        uplink_quantizer='qsgd',
        quantizer_resolution=self.quantization_levels,
        quantizer_code=self.code,
    )
    return Member(settings, self.step_size)


@dataclasses.dataclass(frozen=True)
class FedComConfig(FedPaqConfig):
  """Settings of FedCOM: FedPAQ whose server goes a times as far.

      client m: sends Delta_m = Q_s((x - x_m) / eta)
      server:   x <- x - a eta (1/M) sum_m Delta_m

  Source: Haddadpour et al., AISTATS 2021, arXiv 2007.01154, where a is called
  gamma; a = 10 as in arXiv 2301.08869.
  """

  RATES: ClassVar[tuple[str, ...]] = ('step_size', 'server_factor')

  server_factor: float = setting(
      10.0,
      'The server takes a step of this many times step_size.',
      above=0.0
  )

  @property
  def member(self) -> Member:
    return super().member._replace(
        server_learning_rate=self.server_factor * self.step_size
    )


# What the stages of CEAL are made of; an oracle needs none.
_STAGES = ('sample_constant', 'first_stage', 'threshold_factor')


@dataclasses.dataclass(frozen=True)
class CealConfig(AlgorithmConfig):
  """Settings of CEAL. The defaults are the theory's."""

  RATES: ClassVar[tuple[str, ...]] = ('step_size',)
  DEFAULT_HORIZON: ClassVar[Optional[int]] = 2000
  TAKES_ROUNDS_AND_HORIZON: ClassVar[bool] = True
  PLANS_BY_HORIZON: ClassVar[bool] = True
  COUNTS_REGRET: ClassVar[bool] = True
  QUERIES_MOVE: ClassVar[bool] = False

  step_size: Optional[float] = setting(
      None,
      'eta, the rate of all steps; by default 1 / (5 beta), with beta the '
      'smoothness of f, for the tasks whose f is known as a formula.',
      above=0.0,
      ties=('server_learning_rate',),
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
      4.0,
      'A norm passes the test if it is at least this many times tau_j.',
      above=0.0
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
      False,
      'Start each epoch at the first stage again.'
  )
  broadcast_every_exchange: bool = setting(
      False,
      'Broadcast the vector even if it is not used.'
  )
  code: str = setting(
      'signed_unary', 'The code whose bits are counted.',
      choices=tuple(UNBOUNDED_CODES),
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
    return CEAL

  @property
  def has_data_in_program(self) -> bool:
    return self.epoch_length == 'oracle'


@dataclasses.dataclass(frozen=True)
class AlgorithmEntry:
  """One algorithm.

  Attributes:
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
    """Whether runs end at a horizon of queries unless told otherwise."""
    return self.config_type.DEFAULT_HORIZON is not None


_MEMBER = 'baselines.algorithms.local_update:build_member'

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
    'minibatch_sgd': AlgorithmEntry(MinibatchSgdConfig, _MEMBER),
    'fed_avg': AlgorithmEntry(FedAvgConfig, _MEMBER),
    'fed_paq': AlgorithmEntry(FedPaqConfig, _MEMBER),
    'fed_com': AlgorithmEntry(FedComConfig, _MEMBER),
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
