"""The best rates as flags for `localupdate-sweep`.

What is drawn of one sweep is often run again, for longer or with other
settings: the best eta of each gamma, or the rates that LocalUpdateDecay is to
start from.
"""

from collections.abc import Sequence
import math

from baselines.figures import horizon_runs
from baselines.figures import rate_runs

_HEAD = '# Goes after the flags of a sweep: '


def best_flags(
    groups: Sequence[rate_runs.RateGroup], rule: rate_runs.Rule
) -> str:
  """Returns a flag file with the best eta of each gamma.

  Args:
    groups: The groups, of one task.
    rule: Which eta is best.

  Raises:
    ValueError: If no run has finished, or they differ in more than rates.
  """
  best = _best(groups, rule)
  return f'{_HEAD}the best eta of each gamma.\n{_variants(best)}'


def start_flags(
    groups: Sequence[rate_runs.RateGroup],
    rule: rate_runs.Rule,
    largest: float = math.inf,
) -> str:
  """Returns a flag file with the largest gamma that works, and its best eta.

  The paper has LocalUpdateDecay start from a gamma that is `moderately large,
  non-divergent`; that it is the largest one, and its eta that of a constant
  gamma, is a choice of ours.

  Args:
    groups: The groups, of one task.
    rule: Which eta is best.
    largest: The largest gamma that may be taken.

  Raises:
    ValueError: If no run has finished that has no larger gamma, or they differ
      in more than rates.
  """
  best = [g for g in _best(groups, rule) if g.client_learning_rate <= largest]
  if not best:
    raise ValueError(
        'at_most must leave a gamma with a run that has finished, found '
        f'{largest!r}.'
    )
  start = max(best, key=lambda group: group.client_learning_rate)
  return f'{_HEAD}the rates to start from.\n{_variants([start])}'


def _best(
    groups: Sequence[rate_runs.RateGroup], rule: rate_runs.Rule
) -> list[rate_runs.RateGroup]:
  best = rate_runs.best_of_each(groups, rule)
  if not best:
    raise ValueError(
        'runs must hold a run that has finished, found none among '
        f'{len(groups)} settings.'
    )
  gammas = [group.client_learning_rate for group in best]
  if len(set(gammas)) < len(gammas):
    names = horizon_runs.varied_settings(groups, rate_runs.RATES)
    raise ValueError(
        'runs must have one best eta for each gamma, found runs that differ in '
        f'{", ".join(names)}.'
    )
  return best


def _variants(groups: Sequence[rate_runs.RateGroup]) -> str:
  """Returns a line with a variant for each group, rates to all their digits."""
  variants = [
      f'--sweep_client_learning_rates={group.client_learning_rate!r} '
      f'--sweep_server_learning_rates={group.server_learning_rate!r}'
      for group in groups
  ]
  return f'--sweep_variants={";".join(variants)}\n'
