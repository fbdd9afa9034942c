"""A grid of experiments, as data.

Variants: sets of flags of which each makes an experiment of its own.
"""

from collections.abc import Container
import dataclasses
import itertools
import math
import shlex
from typing import Any, Callable, Mapping, Optional, Sequence

from baselines import command
from baselines.run import plan
from baselines.settings import experiment
from baselines.settings import flags
from baselines.settings import record
from baselines.settings import schema
from baselines.settings.schema import setting

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
    schema.check_settings(self)
    if not self.varied and self.sweep_variants is None:
      raise ValueError(
          f'At least one of {", ".join(_VARIED)}, sweep_variants must be given.'
      )

  @property
  def varied(self) -> dict[str, list[schema.Value]]:
    """The values of each setting that varies."""
    return {
        name: _values(list_name, getattr(self, list_name), kind)
        for list_name, (name, kind) in _VARIED.items()
        if getattr(self, list_name) is not None
    }


def grid_points(
    base: experiment.ExperimentConfig,
    grid: GridConfig,
    given: Container[str] = (),
) -> list[experiment.ExperimentConfig]:
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
      experiment.replace_settings(
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
    name: str, base: experiment.ExperimentConfig
) -> tuple[str, ...]:
  """Returns the settings that a list varies; fixed data have no seed."""
  if name != 'seeds':
    return (name,)
  return SEEDS if base.task.data_seed is not None else SEEDS[1:]


def _values(
    name: str, text: str, kind: Callable[[str], schema.Value]
) -> list[schema.Value]:
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


def split_variants(text: str) -> list[list[str]]:
  """Returns the flags of each variant.

  Args:
    text: Sets of flags separated by semicolons, as a shell would take them.
      An empty set in front is the experiment as it is.

  Raises:
    command.InputError: If quotes do not match, a set occurs twice, or an empty
      one is not the first.
  """
  try:
    variants = [shlex.split(part) for part in text.split(';')]
  except ValueError as error:
    raise command.InputError(
        f'sweep_variants must be flags separated by semicolons: {error}, found '
        f'{text!r}.'
    ) from error
  if not all(variants[1:]):  # More likely a slip than a wish.
    raise command.InputError(
        'sweep_variants must have an empty set of flags, the experiment as it '
        f'is, in front of the others, found {text!r}.'
    )
  if len(set(map(tuple, variants))) != len(variants):
    raise command.InputError(
        f'sweep_variants must name each set of flags once, found {text!r}.'
    )
  return variants


def plan_points(
    arguments: Sequence[str],
    description: str,
    asked: Mapping[type, Any],
) -> list[experiment.ExperimentConfig]:
  """Returns the points of all variants, each once, those of one together.

  Args:
    arguments: The command's arguments.
    description: What the command does, for `--help`.
    asked: The command's own settings by their dataclass, `GridConfig` among
      them, without the flags of variants.

  Raises:
    command.InputError: If flags or values are refused, or data cannot be read.
  """
  configs = []
  variants = asked[GridConfig].sweep_variants
  given = flags.expanded(arguments)
  each = [
      flags.expanded(added, given) for added in split_variants(variants or '')
  ]
  _check_none_ignored(flags.typed(arguments), each)
  for added in each:
    parsed = flags.parse_experiment([*given, *added], description, *asked)
    for kind, settings in parsed.extra.items():
      is_own = kind is GridConfig  # A variant may have own lists.
      found, wanted = (
          s.sweep_variants if is_own else s for s in (settings, asked[kind])
      )
      if found != wanted:
        raise command.InputError(
            'sweep_variants and where results go must not be in a variant, '
            f'found {" ".join(added)!r}.'
        )
    try:
      points = grid_points(
          parsed.config, parsed.extra[GridConfig], parsed.given
      )
    except ValueError as error:
      raise command.InputError(command.one_line(error)) from error
    # They differ in rates and seeds alone, so one stands for all.
    plan.check_inputs(points[0])
    configs += points
  configs = list(dict.fromkeys(configs))
  _check_distinct(configs)
  return configs


def _check_none_ignored(
    typed: Sequence[flags.Flag], variants: Sequence[Sequence[str]]
) -> None:
  """Refuses what was typed if each variant has something else in its place."""
  last = [
      {flag.name: flag for flag in flags.typed(variant)}
      for variant in variants
  ]
  for flag in typed:
    instead = [found.get(flag.name) for found in last]
    if all(instead) and any(other.text != flag.text for other in instead):
      raise command.InputError(
          f'{flag.name} would be ignored: each of sweep_variants has one of '
          f'its own, found {flag.text}.'
      )


def _check_distinct(configs: Sequence[experiment.ExperimentConfig]) -> None:
  """Refuses variants of what is no part of a run's identity: one folder."""
  ids = [record.run_id(config) for config in configs]
  twice = [run_id for run_id in ids if ids.count(run_id) > 1]
  if twice:
    raise command.InputError(
        'sweep_variants must not differ in '
        f'{", ".join(record.CHANGEABLE)} alone: they name one run, '
        f'{twice[0]}.'
    )
