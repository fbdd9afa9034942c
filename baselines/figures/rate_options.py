"""Options that say how the best eta is found, and what is made of them."""

import argparse
from collections.abc import Sequence
from typing import Any

from baselines.figures import values

_MAX_ROUNDS = 10**9
_LAST_ROUNDS = 100
_QUANTITIES = (
    'loss_before_training', 'population_loss', 'example_weighted_loss',
)


def add_rule_options(parser: argparse.ArgumentParser) -> None:
  """Adds `--selected_by` and `--last_rounds`."""
  parser.add_argument(
      '--selected_by',
      choices=_QUANTITIES,
      help='the loss by which the best eta is found (default: '
      f'{_QUANTITIES[0]})',
  )
  parser.add_argument(
      '--last_rounds',
      type=values.whole(1, _MAX_ROUNDS),
      help='the rounds at the end that it is averaged over, at most a tenth of '
      f'a run (default: {_LAST_ROUNDS})',
  )


def add_server_rate_option(parser: argparse.ArgumentParser) -> None:
  """Adds `--server_learning_rate`."""
  parser.add_argument(
      '--server_learning_rate',
      type=values.not_negative,
      help='use the runs with this eta only',
  )


def add_decay_option(parser: argparse.ArgumentParser) -> None:
  """Adds `--decay`."""
  parser.add_argument(
      '--decay',
      action='store_true',
      help='also use the runs of LocalUpdateDecay, beside the others',
  )


def rule_of(options: argparse.Namespace) -> Any:
  """Returns the `rate_runs.Rule` that the options ask for."""
  from baselines.figures import rate_runs

  return rate_runs.Rule(
      options.selected_by or _QUANTITIES[0],
      options.last_rounds or _LAST_ROUNDS,
  )


def refuse_rule(options: argparse.Namespace, why: str) -> None:
  """Raises ValueError if an option of the rule was given that has no use.

  Args:
    options: Parsed options.
    why: Why it has none.
  """
  for name in ('selected_by', 'last_rounds'):
    value = getattr(options, name)
    if value is not None:
      raise ValueError(f'{name} would be ignored: {why}, found {value!r}.')


def constant_groups(options: argparse.Namespace) -> list[Any]:
  """Returns the runs whose rates do not decay, grouped.

  Args:
    options: With `runs` and those of `add_rule_options`.

  Raises:
    ValueError: If there is none, or one cannot be read or has no such loss.
  """
  from baselines.figures import rate_runs

  found = rate_runs.load_groups(options.runs, [rule_of(options).quantity])
  return rate_runs.without_decay(found)


def shown_groups(
    options: argparse.Namespace, columns: Sequence[str]
) -> list[Any]:
  """Returns the runs of a figure, grouped: with `decay` also those that decay.

  Args:
    options: With `runs` and that of `add_decay_option`.
    columns: Columns of metrics.csv that are needed.

  Raises:
    ValueError: If one cannot be read or lacks a column, there is none that
      decays although `decay` asks for it, or there are no others and it does
      not.
  """
  from baselines.figures import rate_runs

  groups = rate_runs.load_groups(options.runs, columns)
  if not options.decay:
    return rate_runs.without_decay(groups, 'give --decay to draw them')
  if not any(group.decays for group in groups):
    raise ValueError(
        'runs must hold a run of LocalUpdateDecay with decay, found none among '
        f'{len(groups)} settings.'
    )
  return groups


def with_plain_names(table: Any) -> Any:
  """Returns the table of lines that were drawn, their names as plain text."""
  from baselines.figures import rate_captions

  if table.empty:
    return table
  names = [rate_captions.plain_text(name) for name in table['line']]
  return table.assign(line=names)
