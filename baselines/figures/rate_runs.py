"""Runs of paper 1 by their rates: repetitions, and the best eta of each gamma.

Runs that differ in seeds only are one group. The paper's rule (section 8): of
all eta, for each gamma, the one with the smallest mean training loss over the
last 100 rounds. A run that has diverged, or has not finished, never wins.
"""

from collections.abc import Collection, Sequence
import dataclasses
import math
import pathlib
from typing import Any, Optional

from baselines.figures import horizon_runs
from baselines.figures import load
from baselines.figures import symbols

RATES = ('client_learning_rate', 'server_learning_rate')
# Rates are compared as decimal texts of them would be, of a few digits less
# than those in which errors name them.
_TOLERANCE = 1e-9
_DIGITS = 12


class RateGroup(horizon_runs.RunGroup):
  """Runs of one gamma and one eta that differ in seeds only."""

  @property
  def client_learning_rate(self) -> float:
    """gamma, at the start where rates change."""
    return self.settings['client_learning_rate']

  @property
  def server_learning_rate(self) -> float:
    """eta, at the start where rates change."""
    return self.settings['server_learning_rate']

  @property
  def decays(self) -> bool:
    """Whether the runs are of LocalUpdateDecay."""
    return self.settings.get('decay_rule', 'none') != 'none'

  @property
  def family(self) -> horizon_runs.Key:
    """All settings but eta and the seeds: what eta is tuned for."""
    return tuple((k, v) for k, v in self.all_runs[0].identity if k != RATES[1])


@dataclasses.dataclass(frozen=True)
class Rule:
  """Which eta is best.

  Attributes:
    quantity: A column of metrics.csv, small where a run is good. The paper
      says `training loss`; that of the rounds is a choice of ours.
    last_rounds: It is averaged over so many rounds at the end, but over no
      more than a tenth of a run, as the tables of a sweep have it.
  """

  quantity: str = 'loss_before_training'
  last_rounds: int = 100

  def num_rounds(self, group: RateGroup) -> int:
    """Returns the number of rounds that are averaged over."""
    return min(self.last_rounds, math.ceil(group.settings['rounds'] / 10))

  def score(
      self, group: RateGroup, seeds: Collection[tuple[Any, ...]] = ()
  ) -> float:
    """Returns the mean over the runs; infinite unless all have finished.

    Args:
      group: The runs.
      seeds: Those of the runs that count; by default all.
    """
    if len(group.runs) < len(group.all_runs):
      return math.inf
    last = self.num_rounds(group)
    counted = [run for run in group.runs if not seeds or run.seeds in seeds]
    scores = [self._mean(run, last) for run in counted]
    mean = math.fsum(scores) / len(scores)
    return mean if math.isfinite(mean) else math.inf

  def _mean(self, run: load.Run, last: int) -> float:
    # As in the tables of a sweep, up to the last round that has a value.
    values = run.metrics.set_index('round')[self.quantity]
    end = values.last_valid_index()
    if end is None:
      return math.nan
    return float(values[(values.index > end - last)].mean())


def load_groups(
    folders: Sequence[pathlib.Path], columns: Sequence[str]
) -> list[RateGroup]:
  """Loads runs that have both rates, and groups repetitions.

  Args:
    folders: Run folders, or folders of run folders.
    columns: Columns of metrics.csv that are needed.

  Returns:
    The groups: tasks as they are found, rates that decay last, then by gamma
    and eta.

  Raises:
    ValueError: If no run has both rates, one lacks a column, or two have equal
      settings and seeds.
  """
  runs = load.load_all(folders)
  wanted = [run for run in runs if all(n in run.settings for n in RATES)]
  if not wanted:
    raise ValueError(
        f'runs must hold a run with {" and ".join(RATES)}; found none among '
        f'{len(runs)} runs.'
    )
  load.check_distinct(wanted)
  groups: dict[horizon_runs.Key, list[load.Run]] = {}
  for run in wanted:
    load.check_columns(run, columns)
    groups.setdefault(run.identity, []).append(run)
  found = [RateGroup(tuple(group)) for group in groups.values()]
  tasks = list(dict.fromkeys(group.task for group in found))
  return sorted(
      found,
      key=lambda g: (
          tasks.index(g.task), g.decays, g.client_learning_rate,
          g.server_learning_rate, repr(g.family),
      ),
  )


def best_of_each(groups: Sequence[RateGroup], rule: Rule) -> list[RateGroup]:
  """Returns, of groups that differ in eta only, the best one.

  Args:
    groups: The groups.
    rule: What is best. Of equal scores the smaller eta wins. Where some etas
      have more seeds than others, those count which all have, if there are any.

  Returns:
    The best of each gamma and whatever else differs, in the order of `groups`;
    none where no eta has a finished run.
  """
  families: dict[horizon_runs.Key, list[RateGroup]] = {}
  for group in sorted(groups, key=lambda g: g.server_learning_rate):
    if math.isfinite(rule.score(group)):
      families.setdefault(group.family, []).append(group)
  best = []
  for members in families.values():
    shared = set.intersection(*({r.seeds for r in g.runs} for g in members))
    best.append(min(members, key=lambda g, s=shared: rule.score(g, s)))
  return [group for group in groups if group in best]


def without_decay(
    groups: Sequence[RateGroup], advice: str = ''
) -> list[RateGroup]:
  """Returns the groups whose rates do not decay.

  Args:
    groups: The groups.
    advice: What to do if there are none but those of LocalUpdateDecay.

  Raises:
    ValueError: If there is none.
  """
  found = [group for group in groups if not group.decays]
  if not found:
    raise ValueError(
        'runs must hold a run whose rates do not decay, found none among '
        f'{len(groups)} settings, all of LocalUpdateDecay'
        f'{"; " if advice else ""}{advice}.'
    )
  return found


def with_rates(
    groups: Sequence[RateGroup],
    client_learning_rates: Optional[Sequence[float]] = None,
    server_learning_rate: Optional[float] = None,
) -> list[RateGroup]:
  """Returns the groups with these rates.

  Args:
    groups: The groups.
    client_learning_rates: The gammas that are wanted; by default all. Those
      of LocalUpdateDecay are kept: what they start from is no gamma to compare.
    server_learning_rate: The eta that is wanted; by default any.

  Raises:
    ValueError: If no group has this eta, or one of these gammas with it.
  """
  eta, gammas = server_learning_rate, client_learning_rates
  if eta is not None:
    there = {group.server_learning_rate for group in groups}
    _check_rates(RATES[1], [eta], there)
    groups = [g for g in groups if _equal(g.server_learning_rate, eta)]
  if gammas is None:
    return list(groups)
  there = {g.client_learning_rate for g in groups if not g.decays}
  which = '' if eta is None else f' with the {RATES[1]} asked for'
  _check_rates(RATES[0], gammas, there, which)
  return [
      group
      for group in groups
      if group.decays
      or any(_equal(group.client_learning_rate, gamma) for gamma in gammas)
  ]


def with_equal_rates(groups: Sequence[RateGroup]) -> list[RateGroup]:
  """Returns the groups with eta = gamma.

  Raises:
    ValueError: If there is none.
  """
  found = [
      g for g in groups
      if _equal(g.client_learning_rate, g.server_learning_rate)
  ]
  if not found:
    raise ValueError(
        f'runs must hold a run with server_learning_rate equal to '
        f'client_learning_rate; found none among {len(groups)} settings.'
    )
  return found


def _check_rates(
    name: str, asked: Sequence[float], there: Collection[float], which: str = ''
) -> None:
  """Raises ValueError unless each rate asked for is that of a run."""
  lost = [a for a in asked if not any(_equal(a, rate) for rate in there)]
  if lost:
    lost_text, there_text = (
        ', '.join(dict.fromkeys(symbols.number_text(r, _DIGITS) for r in rates))
        for rates in (lost, sorted(there))
    )
    raise ValueError(
        f'runs must hold a run of each {name} asked for; none{which} has '
        f'{lost_text}, they have {there_text or "rates that decay"}.'
    )


def _equal(first: float, second: float) -> bool:
  return math.isclose(first, second, rel_tol=_TOLERANCE)
