"""A grid of experiments, as data."""

from collections.abc import Container
import dataclasses
import itertools
from typing import Callable, Optional

from baselines import settings
from baselines.experiment import config as config_lib
from baselines.settings import setting

# The setting that each list of the grid varies, in the order of the loops.
_VARIED = {
    'sweep_client_learning_rates': ('client_learning_rate', float),
    'sweep_server_learning_rates': ('server_learning_rate', float),
    'sweep_sampling_seeds': ('sampling_seed', int),
}


@dataclasses.dataclass(frozen=True)
class GridConfig:
  """The grid: every combination of the lists."""

  sweep_client_learning_rates: Optional[str] = setting(
      None, 'Values of client_learning_rate, separated by commas.'
  )
  sweep_server_learning_rates: Optional[str] = setting(
      None, 'Values of server_learning_rate, separated by commas.'
  )
  sweep_sampling_seeds: Optional[str] = setting(
      None, 'Values of sampling_seed, separated by commas.'
  )

  def __post_init__(self) -> None:
    settings.check_settings(self)
    if not self.varied:
      raise ValueError(
          f'At least one of {", ".join(_VARIED)} must be given.'
      )

  @property
  def varied(self) -> dict[str, list[settings.Value]]:
    """The values of each setting that varies."""
    return {
        name: _values(list_name, getattr(self, list_name), kind)
        for list_name, (name, kind) in _VARIED.items()
        if getattr(self, list_name) is not None
    }


def points(
    base: config_lib.ExperimentConfig,
    grid: GridConfig,
    given: Container[str] = (),
) -> list[config_lib.ExperimentConfig]:
  """Returns the experiments of the grid, the last list varying fastest.

  Args:
    base: The settings that do not vary.
    grid: The lists.
    given: Names of settings that were given one value.

  Returns:
    One config per point.

  Raises:
    ValueError: If a value of a list is refused by its setting, or a setting
      that was given is also varied.
  """
  varied = grid.varied
  for name in varied:
    if name in given:
      raise ValueError(f'{name} would be ignored: the grid varies it.')
  return [
      config_lib.replace_settings(base, **dict(zip(varied, values)))
      for values in itertools.product(*varied.values())
  ]


def _values(
    name: str, text: str, kind: Callable[[str], settings.Value]
) -> list[settings.Value]:
  try:
    values = [kind(part) for part in text.split(',')]
  except ValueError as error:
    raise ValueError(
        f'{name} must be numbers separated by commas, found {text!r}.'
    ) from error
  if len(set(values)) != len(values):
    raise ValueError(f'{name} must name each value once, found {text!r}.')
  return values
