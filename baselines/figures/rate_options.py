"""Options that say how the best eta is found, and what is made of them."""

import argparse
from typing import Any

from baselines.figures import values

_MAX_ROUNDS = 10**9
_QUANTITIES = (
    'loss_before_training', 'population_loss', 'example_weighted_loss',
)


def add_rule_options(parser: argparse.ArgumentParser) -> None:
  """Adds `--selected_by` and `--last_rounds`."""
  parser.add_argument(
      '--selected_by',
      choices=_QUANTITIES,
      default=_QUANTITIES[0],
      help='the loss by which the best eta is found (default: %(default)s)',
  )
  parser.add_argument(
      '--last_rounds',
      type=values.whole(1, _MAX_ROUNDS),
      default=100,
      help='the rounds at the end that it is averaged over, at most a tenth of '
      'a run (default: %(default)s)',
  )


def add_server_rate_option(parser: argparse.ArgumentParser) -> None:
  """Adds `--server_learning_rate`."""
  parser.add_argument(
      '--server_learning_rate',
      type=values.not_negative,
      help='use the runs with this eta only',
  )


def rule_of(options: argparse.Namespace) -> Any:
  """Returns the `rate_runs.Rule` that the options ask for."""
  from baselines.figures import rate_runs

  return rate_runs.Rule(options.selected_by, options.last_rounds)


def constant_groups(options: argparse.Namespace) -> list[Any]:
  """Returns the runs whose rates do not decay, grouped.

  Args:
    options: With `runs` and `selected_by`.

  Raises:
    ValueError: If there is none, or one cannot be read or has no such loss.
  """
  from baselines.figures import rate_runs

  found = rate_runs.load_groups(options.runs, [options.selected_by])
  groups = [group for group in found if not group.decays]
  if not groups:
    raise ValueError(
        'runs must hold a run whose rates do not decay, found none among '
        f'{len(found)} settings.'
    )
  return groups
