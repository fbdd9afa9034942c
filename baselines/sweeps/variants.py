"""Variants: sets of flags of which each makes an experiment of its own."""

import shlex
from typing import Any, Mapping, Sequence

from baselines import flag_files
from baselines.experiment import command
from baselines.experiment import config as config_lib
from baselines.experiment import config_json
from baselines.experiment import flags
from baselines.experiment import plan as plan_lib
from baselines.sweeps import grid as grid_lib


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
) -> list[config_lib.ExperimentConfig]:
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
  variants = asked[grid_lib.GridConfig].sweep_variants
  given = flags.expanded(arguments)
  each = [
      flags.expanded(added, given) for added in split_variants(variants or '')
  ]
  _check_none_ignored(flag_files.typed(arguments), each)
  for added in each:
    parsed = flags.parse_experiment([*given, *added], description, *asked)
    for kind, settings in parsed.extra.items():
      is_own = kind is grid_lib.GridConfig  # A variant may have own lists.
      found, wanted = (
          s.sweep_variants if is_own else s for s in (settings, asked[kind])
      )
      if found != wanted:
        raise command.InputError(
            'sweep_variants and where results go must not be in a variant, '
            f'found {" ".join(added)!r}.'
        )
    try:
      points = grid_lib.points(
          parsed.config, parsed.extra[grid_lib.GridConfig], parsed.given
      )
    except ValueError as error:
      raise command.InputError(command.one_line(error)) from error
    # They differ in rates and seeds alone, so one stands for all.
    plan_lib.check_inputs(points[0])
    configs += points
  configs = list(dict.fromkeys(configs))
  _check_distinct(configs)
  return configs


def _check_none_ignored(
    typed: Sequence[flag_files.Flag], variants: Sequence[Sequence[str]]
) -> None:
  """Refuses what was typed if each variant has something else in its place."""
  last = [
      {flag.name: flag for flag in flag_files.typed(variant)}
      for variant in variants
  ]
  for flag in typed:
    instead = [found.get(flag.name) for found in last]
    if all(instead) and any(other.text != flag.text for other in instead):
      raise command.InputError(
          f'{flag.name} would be ignored: each of sweep_variants has one of '
          f'its own, found {flag.text}.'
      )


def _check_distinct(configs: Sequence[config_lib.ExperimentConfig]) -> None:
  """Refuses variants of what is no part of a run's identity: one folder."""
  ids = [config_json.run_id(config) for config in configs]
  twice = [run_id for run_id in ids if ids.count(run_id) > 1]
  if twice:
    raise command.InputError(
        'sweep_variants must not differ in '
        f'{", ".join(config_json.CHANGEABLE)} alone: they name one run, '
        f'{twice[0]}.'
    )
