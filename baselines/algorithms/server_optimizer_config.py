"""Settings of the server optimizers of paper 1."""

import dataclasses
from typing import Any, Optional

from baselines import settings
from baselines.settings import setting

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
