"""Which experiments a sweep runs: lists of values, and variants, as data.

A list has the values of one declared setting, whichever it is. The experiments
are all combinations of the lists. Each is built from the settings that were
given and its own values, as if it had been asked for alone, so whatever depends
on a setting that varies, such as the model of a task, follows it. All are
checked before TensorFlow is loaded.

A variant is a set of flags, which makes an experiment, or a grid, of its own.
"""

import collections
from collections.abc import Mapping, Sequence
import dataclasses
import itertools
import math
import shlex
from typing import Any, Callable, Optional

from baselines import command
from baselines.settings import algorithms
from baselines.settings import experiment
from baselines.settings import flags
from baselines.settings import record
from baselines.settings import schema
from baselines.settings.schema import setting
from baselines.training import plan

Lists = Mapping[str, Sequence[schema.Value]]

# The list that each flag of the command gives, and the type of its values.
_VARIED = {
    'sweep_client_learning_rates': ('client_learning_rate', float),
    'sweep_server_learning_rates': ('server_learning_rate', float),
    'sweep_step_sizes': ('step_size', float),
    'sweep_sampling_seeds': ('sampling_seed', int),
    'sweep_seeds': ('seeds', int),
}
# A list of this name gives each value to all seeds of the experiment.
ALL_SEEDS = 'seeds'
SEEDS = ('data_seed', 'model_seed', 'sampling_seed')
_MOST_VALUES = 10_000
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
    _ = self.varied  # Which checks them.

  @property
  def varied(self) -> dict[str, list[schema.Value]]:
    """The values of each setting that varies."""
    return {
        name: _values(list_name, getattr(self, list_name), kind)
        for list_name, (name, kind) in _VARIED.items()
        if getattr(self, list_name) is not None
    }


def typed_lists(lists: Mapping[str, Any]) -> dict[str, list[schema.Value]]:
  """Returns lists of the Python interface, the values as settings have them.

  Lists are by the name of any setting of an experiment, or by `seeds`. Raises
  `InputError` if there is no such setting, or its values are no list of values
  of its type, each once.
  """
  found = {}
  for name, values in lists.items():
    if isinstance(values, (str, bytes)) or not hasattr(values, '__iter__'):
      raise command.InputError(
          f'{name} must be a list of values to sweep, found {values!r}.'
      )
    declared = SEEDS[-1] if name == ALL_SEEDS else name
    values = [flags.typed_setting(declared, value) for value in values]
    if not values:
      raise command.InputError(f'{name} must have a value to sweep, found [].')
    try:
      _check_list(name, values, values)
    except ValueError as error:
      raise command.InputError(str(error)) from error
    found[name] = values
  return found


def grid_points(
    given: Mapping[str, schema.Value], lists: Lists
) -> list[experiment.ExperimentConfig]:
  """Returns the experiments of the lists, each once.

  Those that share data and programs follow each other: settings of the task
  vary slowest, then all others, then rates, then seeds; of two of a kind, the
  later list varies faster. `given` are the settings that do not vary and do not
  have their defaults.

  Raises:
    command.InputError: If a value or a combination is refused, or a setting
      varies that is also given, or that another list varies.
  """
  names = sorted(lists, key=_kind)  # Stable.
  points = []
  for values in itertools.product(*(lists[name] for name in names)):
    point = dict(given)
    taken = set(given)
    for name, value in zip(names, values):
      for own in _settings_of(name, point):
        if own in taken:
          raise command.InputError(
              f'{own} would be ignored: the grid varies it.'
          )
        taken.add(own)
        if value is not None:
          point[own] = value
    points.append(flags.build_experiment(point))
  return list(dict.fromkeys(points))


def _kind(name: str) -> int:
  """Returns how fast a setting varies: 0 with the data, 3 without any cost."""
  if name == ALL_SEEDS or name in SEEDS:
    return 3
  rates = {'server_learning_rate'}
  for entry in algorithms.ALGORITHMS.values():
    rates.update(entry.config_type.RATES)
  if name in rates:
    return 2
  fields = dataclasses.fields(experiment.TaskConfig)
  return 0 if name in {field.name for field in fields} else 1


def _settings_of(
    name: str, point: Mapping[str, schema.Value]
) -> tuple[str, ...]:
  """Returns the settings that a list varies; fixed data have no seed."""
  if name != ALL_SEEDS:
    return (name,)
  kind = experiment.TaskConfig
  has_seed = flags.build_own(point, kind)[kind].data_seed is not None
  return SEEDS if has_seed else SEEDS[1:]


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
  _check_list(name, values, text)
  return values


def _check_list(name: str, values: Sequence[schema.Value], found: Any) -> None:
  if len(values) > _MOST_VALUES:
    raise ValueError(
        f'{name} must be at most {_MOST_VALUES} values, found {len(values)}.'
    )
  if len(set(values)) != len(values):
    raise ValueError(f'{name} must name each value once, found {found!r}.')


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
  """Returns the flags of each variant, separated by semicolons.

  They are as a shell would take them. An empty set in front is the experiment
  as it is. Raises `InputError` if quotes do not match, a set occurs twice, or
  an empty one is not the first.
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
    own: type,
    lists: Optional[Lists] = None,
) -> tuple[list[experiment.ExperimentConfig], Any]:
  """Returns the experiments of all variants, and the command's own settings.

  Each experiment once, those of one variant together; and the command's
  settings besides `GridConfig`, an `own`. The description is for `--help`;
  `lists` come besides those of the arguments.

  Raises:
    command.InputError: If flags or values are refused, nothing varies, or data
      cannot be read.
  """
  asked = flags.build_own(
      flags.parse(arguments, description, GridConfig, own), GridConfig, own
  )
  variants = asked[GridConfig].sweep_variants
  if not asked[GridConfig].varied and variants is None and lists is None:
    raise command.InputError(
        f'At least one of {", ".join(_VARIED)}, sweep_variants must be given.'
    )
  given = flags.expanded(arguments)
  each = [
      flags.expanded(added, given) for added in split_variants(variants or '')
  ]
  _check_none_ignored(flags.typed(arguments), each)
  configs = []
  for added in each:
    values = flags.parse([*given, *added], description, GridConfig, own)
    configs += _points_of_variant(values, added, asked, lists or {})
  configs = list(dict.fromkeys(configs))
  _check_distinct(configs)
  return configs, asked[own]


def _points_of_variant(
    values: Mapping[str, schema.Value],
    added: Sequence[str],
    asked: Mapping[type, Any],
    lists: Lists,
) -> list[experiment.ExperimentConfig]:
  """Returns the checked experiments of one variant.

  `values` are the flags of all and of the variant, whose own are `added`;
  `asked` are the command's settings without them.
  """
  found = flags.build_own(values, *asked)
  for kind, settings in asked.items():
    is_own = kind is GridConfig  # A variant may have lists of its own.
    new, old = (s.sweep_variants if is_own else s
                for s in (found[kind], settings))
    if new != old:
      raise command.InputError(
          'sweep_variants and where results go must not be in a variant, '
          f'found {" ".join(added)!r}.'
      )
  own = {f.name for kind in asked for f in dataclasses.fields(kind)}
  varied = found[GridConfig].varied
  for name in varied:
    if name in lists:
      raise command.InputError(f'{name} would be ignored: the grid varies it.')
  points = grid_points(
      {name: value for name, value in values.items() if name not in own},
      {**varied, **lists},
  )
  # One of those that ask the same of the data stands for all.
  for point in {_asked_of_data(point): point for point in points}.values():
    plan.check_inputs(point)
  return points


def _asked_of_data(config: experiment.ExperimentConfig) -> Any:
  """Returns what `plan.check_inputs` depends on."""
  algorithm = dataclasses.asdict(config.algorithm)
  return (
      dataclasses.replace(config.task, data_seed=None),
      config.run.clients_per_round,
      config.run.client_sampling,
      tuple(name for name, value in algorithm.items() if value is None),
  )


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
  """Refuses experiments that would share a folder."""
  counts = collections.Counter(map(record.run_id, configs))
  for run_id, count in counts.items():
    if count > 1:
      raise command.InputError(
          'The runs of a sweep must not differ in '
          f'{", ".join(record.CHANGEABLE)} alone: {count} are {run_id}.'
      )
