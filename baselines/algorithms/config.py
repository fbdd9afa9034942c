"""Settings of the algorithms and of their server optimizers."""

import dataclasses
from typing import Any, ClassVar, Optional

from baselines import settings
from baselines.settings import setting
from tff_localupdate import theta as theta_lib

# For each server optimizer, the settings that it reads and their defaults.
# Yogi: Charles and Konecny 2020, section 8 (not TFF's defaults).
OPTIMIZER_DEFAULTS: dict[str, dict[str, settings.Value]] = {
    'sgd': {'server_momentum': 0.0},
    'yogi': {
        'yogi_beta_1': 0.9,
        'yogi_beta_2': 0.99,
        'yogi_epsilon': 1e-5,
        'yogi_initial_accumulator': 0.0,
        'yogi_bias_correction': True,
    },
    'adam': {
        'adam_beta_1': 0.9,
        'adam_beta_2': 0.999,
        'adam_epsilon': 1e-7,
        'adam_initial_accumulator': 0.0,
        'adam_bias_correction': True,
    },
    'adagrad': {
        'adagrad_initial_accumulator': 0.1,
        'adagrad_epsilon': 1e-7,
    },
}


# The quantizers of clients' messages, and the code of each by default.
QUANTIZER_DEFAULTS: dict[str, Optional[str]] = {
    'none': None,
    'grid_vector': 'signed_unary',
    'grid_coordinate': 'signed_unary',
    'qsgd': 'fixed_width',
    'uniform': 'fixed_width',
}


@dataclasses.dataclass(frozen=True)
class LocalUpdateConfig:
  """Settings of LocalUpdate (Algorithms 1 and 2)."""

  RATES: ClassVar[tuple[str, ...]] = ('client_learning_rate',)

  theta: str = setting(
      '1:10',
      'Weights of the local gradients: 1:K (all K steps count alike), kK (only '
      'the last of K steps counts), or weights separated by commas.',
  )
  client_learning_rate: float = setting(
      0.05, 'gamma, the rate of the local steps; 0 is legal.', minimum=0.0
  )
  loss_before_training: str = setting(
      'drawn',
      "What the round's loss before training is computed on: all examples "
      'drawn for the round (drawn), those of the first local step, which costs '
      'nothing (first_batch), or all data of each client (full).',
      choices=('drawn', 'first_batch', 'full'),
  )

  uplink_quantizer: str = setting(
      'none',
      'How clients quantize what they send, and the server takes the mean of: '
      'not at all, on a grid of CEAL whose resolution bounds the norm of the '
      'error (grid_vector) or that of each coordinate (grid_coordinate), by '
      'QSGD, or uniformly between the least and the largest coordinate.',
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
    settings.check_settings(self)
    self._check_quantizer()
    canonical = str(theta_lib.parse_theta(self.theta))
    object.__setattr__(self, 'theta', canonical)

  @property
  def num_steps(self) -> int:
    """K(Theta), the number of mini-batches that a client draws per round."""
    return theta_lib.parse_theta(self.theta).num_steps

  @property
  def EXTRA_COLUMNS(self) -> tuple[str, ...]:  # pylint: disable=invalid-name
    """The columns of metrics.csv besides the usual ones."""
    return () if self.uplink_quantizer == 'none' else ('uplink_bits',)

  def _check_quantizer(self) -> None:
    code = QUANTIZER_DEFAULTS[self.uplink_quantizer]
    if code is None:
      for name in ('quantizer_resolution', 'quantizer_code'):
        if getattr(self, name) is not None:
          raise ValueError(
              f"{name} would be ignored: uplink_quantizer is 'none'."
          )
      return
    if self.quantizer_resolution is None:
      raise ValueError(
          'quantizer_resolution must be given with uplink_quantizer '
          f'{self.uplink_quantizer!r}, found None.'
      )
    settings.fill_setting(self, 'quantizer_code', code)
    if code == 'fixed_width':
      if not self.quantizer_resolution.is_integer():
        raise ValueError(
            'quantizer_resolution must be a whole number of levels with '
            f'uplink_quantizer {self.uplink_quantizer!r}, found '
            f'{self.quantizer_resolution!r}.'
        )
    elif self.quantizer_code == 'fixed_width':
      raise ValueError(
          "quantizer_code must not be 'fixed_width' with a grid, whose "
          'integers have no bound.'
      )


def _own(name: str, help_text: str, **rules: float) -> Any:
  """Declares a setting that only one of the optimizers reads."""
  for optimizer, defaults in OPTIMIZER_DEFAULTS.items():
    if name in defaults:
      text = f'{optimizer}: {help_text}; by default {defaults[name]}.'
      return setting(None, text, **rules)
  raise ValueError(f'name must be a setting of an optimizer, found {name!r}.')


@dataclasses.dataclass(frozen=True)
class ServerOptimizerConfig:
  """Settings of the server optimizer.

  Settings of the chosen optimizer that are not given take its defaults; those
  of the others stay None.

  Raises:
    ValueError: Also if a setting of an optimizer is given that is not chosen.
  """

  server_optimizer: str = setting(
      'sgd', 'The server optimizer.', choices=tuple(OPTIMIZER_DEFAULTS)
  )
  server_learning_rate: float = setting(
      0.05, 'eta, the rate of the server optimizer.', minimum=0.0
  )
  server_momentum: Optional[float] = _own(
      'server_momentum', 'momentum', minimum=0.0, below=1.0
  )
  yogi_beta_1: Optional[float] = _own(
      'yogi_beta_1', 'decay of the first moment', minimum=0.0, below=1.0
  )
  yogi_beta_2: Optional[float] = _own(
      'yogi_beta_2', 'decay of the second moment', minimum=0.0, below=1.0
  )
  yogi_epsilon: Optional[float] = _own(
      'yogi_epsilon', 'added to the root of the second moment', above=0.0
  )
  yogi_initial_accumulator: Optional[float] = _own(
      'yogi_initial_accumulator', 'start of the second moment', minimum=0.0
  )
  yogi_bias_correction: Optional[bool] = _own(
      'yogi_bias_correction', 'correct the moments for their start'
  )
  adam_beta_1: Optional[float] = _own(
      'adam_beta_1', 'decay of the first moment', minimum=0.0, below=1.0
  )
  adam_beta_2: Optional[float] = _own(
      'adam_beta_2', 'decay of the second moment', minimum=0.0, below=1.0
  )
  adam_epsilon: Optional[float] = _own(
      'adam_epsilon', 'added to the root of the second moment', above=0.0
  )
  adam_initial_accumulator: Optional[float] = _own(
      'adam_initial_accumulator', 'start of the second moment', minimum=0.0
  )
  adam_bias_correction: Optional[bool] = _own(
      'adam_bias_correction', 'correct the moments for their start'
  )
  adagrad_initial_accumulator: Optional[float] = _own(
      'adagrad_initial_accumulator', 'start of the sum of squares', minimum=0.0
  )
  adagrad_epsilon: Optional[float] = _own(
      'adagrad_epsilon', 'added to the sum of squares', above=0.0
  )

  def __post_init__(self) -> None:
    settings.check_settings(self)
    for optimizer, defaults in OPTIMIZER_DEFAULTS.items():
      for name, default in defaults.items():
        if optimizer == self.server_optimizer:
          settings.fill_setting(self, name, default)
        elif getattr(self, name) is not None:
          raise ValueError(
              f'{name} is a setting of {optimizer} and would be ignored: '
              f'server_optimizer is {self.server_optimizer!r}.'
          )

  @property
  def hyperparameters(self) -> dict[str, settings.Value]:
    """The chosen optimizer's own settings, named as its builder's arguments."""
    return {
        name.partition('_')[2]: getattr(self, name)
        for name in OPTIMIZER_DEFAULTS[self.server_optimizer]
    }
