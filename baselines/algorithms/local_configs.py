"""Settings of LocalUpdate and its relatives (paper 1)."""

import dataclasses
from typing import ClassVar, Optional

from baselines import settings
from baselines.algorithms import algorithm_config
from baselines.settings import setting
from tff_localupdate import theta as theta_lib

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
class LocalConfig(algorithm_config.AlgorithmConfig):
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
    settings.fill_setting(self, 'quantizer_code', code)
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
          settings.fill_setting(self, name, default)
        elif getattr(self, name) is not None:
          raise ValueError(
              f'{name} is a setting of {optimizer} and would be ignored: '
              f'client_optimizer is {self.client_optimizer!r}.'
          )

  @property
  def step_options(self) -> dict[str, settings.Value]:
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
  def step_options(self) -> dict[str, settings.Value]:
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
