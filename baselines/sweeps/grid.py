"""A grid of experiments, as data."""

from collections.abc import Container
import dataclasses
import itertools
import math
from typing import Callable, Optional

from baselines import settings
from baselines.experiment import config as config_lib
from baselines.settings import setting

# The setting that each list of the grid varies, in the order of the loops.
_VARIED = {
    'sweep_client_learning_rates': ('client_learning_rate', float),
    'sweep_server_learning_rates': ('server_learning_rate', float),
    'sweep_step_sizes': ('step_size', float),
    'sweep_sampling_seeds': ('sampling_seed', int),
    'sweep_seeds': ('seeds', int),
}
_MOST_VALUES = 10_000
SEEDS = ('data_seed', 'model_seed', 'sampling_seed')
# Mantissas of logarithmic grids, by name.
_GRIDS = {
    'decades': (1.0,),
    'half_decades': (1.0, math.sqrt(10.0)),
    'one_two_five': (1.0, 2.0, 5.0),
}
_LIST = (
    'separated by commas; also GRID:A:B for the numbers of a grid from 10^A to '
    f'10^B, GRID being one of {", ".join(_GRIDS)}.'
)
_SEED_LIST = 'separated by commas; also A:B for all from A to B.'


@dataclasses.dataclass(frozen=True)
class GridConfig:
  """The grid: every combination of the lists, for each variant."""

  sweep_client_learning_rates: Optional[str] = setting(
      None, f'Values of client_learning_rate, {_LIST}'
  )
  sweep_server_learning_rates: Optional[str] = setting(
      None, f'Values of server_learning_rate, {_LIST}'
  )
  sweep_step_sizes: Optional[str] = setting(
      None, f'Values of step_size, {_LIST}'
  )
  sweep_sampling_seeds: Optional[str] = setting(
      None, f'Values of sampling_seed, {_SEED_LIST}'
  )
  sweep_seeds: Optional[str] = setting(
      None,
      'Values, each of which all seeds of the experiment take, those of data, '
      f'model and sampling, {_SEED_LIST}',
  )
  sweep_variants: Optional[str] = setting(
      None,
      'Sets of flags, separated by semicolons; each is added to the other '
      'flags and makes an experiment of its own, such as another --flagfile or '
      '--algorithm. One may have lists of its own.',
  )

  def __post_init__(self) -> None:
    settings.check_settings(self)
    if not self.varied and self.sweep_variants is None:
      raise ValueError(
          f'At least one of {", ".join(_VARIED)}, sweep_variants must be given.'
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
  """Returns the experiments of the lists, the last list varying fastest.

  Args:
    base: The settings that do not vary.
    grid: The lists; its variants are up to the caller.
    given: Names of settings that were given one value.

  Returns:
    One config per point.

  Raises:
    ValueError: If a value of a list is refused by its setting, or a setting
      that was given, or that another list varies, is also varied.
  """
  varied = grid.varied
  names = {name: _settings_of(name, base) for name in varied}
  taken = set()
  for setting_name in itertools.chain(*names.values()):
    if setting_name in given or setting_name in taken:
      raise ValueError(f'{setting_name} would be ignored: the grid varies it.')
    taken.add(setting_name)
  return [
      config_lib.replace_settings(
          base,
          **{
              setting_name: value
              for name, value in zip(varied, values)
              for setting_name in names[name]
          },
      )
      for values in itertools.product(*varied.values())
  ]


def _settings_of(
    name: str, base: config_lib.ExperimentConfig
) -> tuple[str, ...]:
  """Returns the settings that a list varies; fixed data have no seed."""
  if name != 'seeds':
    return (name,)
  return SEEDS if base.task.data_seed is not None else SEEDS[1:]


def _values(
    name: str, text: str, kind: Callable[[str], settings.Value]
) -> list[settings.Value]:
  expand = _expand_seeds if kind is int else _expand_rates
  try:
    values = [value for part in text.split(',') for value in expand(part)]
  except (ValueError, OverflowError) as error:
    form = 'A:B with A <= B' if kind is int else 'GRID:A:B with A <= B'
    raise ValueError(
        f'{name} must be numbers separated by commas, or {form}, found '
        f'{text!r}.'
    ) from error
  if len(values) > _MOST_VALUES:
    raise ValueError(
        f'{name} must be at most {_MOST_VALUES} values, found {len(values)}.'
    )
  if len(set(values)) != len(values):
    raise ValueError(f'{name} must name each value once, found {text!r}.')
  return values


def _expand_seeds(part: str) -> list[int]:
  if ':' not in part:
    return [int(part)]
  first, last = map(int, part.split(':'))
  if last < first:
    raise ValueError('An empty range.')
  return list(range(first, min(last, first + _MOST_VALUES) + 1))


def _expand_rates(part: str) -> list[float]:
  if ':' not in part:
    return [float(part)]
  grid, first, last = part.split(':')
  if grid not in _GRIDS or int(last) < int(first):
    raise ValueError('No such grid.')
  # From decimal texts, so that 1e-3 is what a user would have typed.
  values = [
      float(f'{mantissa}e{exponent}')
      for exponent in range(int(first), int(last) + 1)
      for mantissa in _GRIDS[grid]
  ]
  return [value for value in values if value <= float(f'1e{last}')]
