"""Repetitions: runs that differ in seeds only, and which of them are wanted.

Figures of paper 2 show means over the runs that have finished, which all reach
the same horizon; those of paper 1 leave out a group with a diverged run. The
runs left out are counted, and every caption tells of them (`captions`).
"""

from collections.abc import Collection, Sequence
import functools
import math
from typing import Any, Optional

from baselines.results import runs as runs_lib
from baselines.results import symbols

RATES = ('client_learning_rate', 'server_learning_rate')
# Settings of the run that change no regret and no bits.
_NO_RESULT = ('rounds_per_evaluation', 'rounds_per_checkpoint')
# Rates are compared as decimal texts of them would be, of a few digits less
# than those in which errors name them.
_TOLERANCE = 1e-9
_DIGITS = 12

Key = runs_lib.Key


class Group:
  """One or more runs, whatever became of them, that differ in seeds only."""

  def __init__(self, runs: Sequence[runs_lib.Run]):
    self.all_runs = tuple(runs)

  @property
  def runs(self) -> list[runs_lib.Run]:
    """Those that have finished."""
    return [run for run in self.all_runs if run.finished]

  @property
  def num_diverged(self) -> int:
    """How many have diverged."""
    return sum(run.diverged for run in self.all_runs)

  @property
  def num_unfinished(self) -> int:
    """How many have neither finished nor diverged."""
    return len(self.all_runs) - len(self.runs) - self.num_diverged

  @property
  def identity(self) -> Key:
    """All settings but those that may differ among the runs."""
    return self.all_runs[0].identity

  @functools.cached_property
  def settings(self) -> dict[str, Any]:
    """The same by name."""
    return dict(self.identity)

  @property
  def components(self) -> Any:
    """The settings of the first run, by component."""
    return self.all_runs[0].components

  @property
  def algorithm(self) -> str:
    """The algorithm, as settings name it."""
    return self.settings['algorithm']

  @property
  def task(self) -> str:
    """Task, model and source of the data."""
    names = ('task', 'model', 'data_source')
    texts = [str(self.settings.get(name)) for name in names]
    return f'{texts[0]} {texts[1]} ({texts[2]})'

  @property
  def experiment(self) -> Key:
    """What algorithms that are compared have in common.

    Those are the settings of the task and of the run, without seeds and
    without such as change no result, and the horizon.
    """
    shared = {
        **self.components.get('task', {}), **self.components.get('run', {})
    }
    names = set(self.settings) & set(shared) - set(_NO_RESULT) | {'horizon'}
    return tuple(sorted((n, self.settings.get(n)) for n in names))

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
  def family(self) -> Key:
    """All settings but eta and the seeds: what eta is tuned for."""
    return tuple((k, v) for k, v in self.identity if k != RATES[1])


def group_runs(runs: Sequence[runs_lib.Run]) -> list[Group]:
  """Returns the runs as groups, in the order of their first ones."""
  groups: dict[Key, list[runs_lib.Run]] = {}
  for run in runs:
    groups.setdefault(run.identity, []).append(run)
  return list(map(Group, groups.values()))


def group_distinct(runs: Sequence[runs_lib.Run]) -> list[Group]:
  """As `group_runs`; raises ValueError if two runs are equal, seeds included.
  """
  found: dict[Any, runs_lib.Run] = {}
  for run in runs:
    same = found.setdefault((run.identity, run.seeds), run)
    if same is not run:
      raise ValueError(
          f'runs must not repeat a run; {same.path} and {run.path} have equal '
          'settings and seeds.'
      )
  return group_runs(runs)


def group_by_rates(table: Any, columns: Sequence[str]) -> list[Group]:
  """Returns the runs that have gamma and eta, as figures of paper 1 take them.

  Tasks are in the order in which they are found, rates that decay last, then by
  gamma and eta. Raises ValueError if no run has both rates, one lacks a column,
  or two have equal settings and seeds.
  """
  runs = runs_lib.runs_of(table)
  wanted = [run for run in runs if all(n in run.settings for n in RATES)]
  if not wanted:
    raise ValueError(
        f'runs must hold a run with {" and ".join(RATES)}; found none among '
        f'{len(runs)} runs.'
    )
  found = group_distinct(wanted)
  for run in wanted:
    _check_columns(run, columns)
  tasks = list(dict.fromkeys(group.task for group in found))
  return sorted(
      found,
      key=lambda g: (
          tasks.index(g.task), g.decays, g.client_learning_rate,
          g.server_learning_rate, repr(g.family),
      ),
  )


def group_by_algorithm(
    table: Any,
    columns: Sequence[str],
    algorithms: Optional[Collection[str]] = None,
) -> list[Group]:
  """Returns the runs to a horizon, as figures of paper 2 take them.

  Runs of equal settings and seeds, as two sweeps may have, count as one: the
  first that has finished. All `algorithms` with a horizon are wanted by
  default. Tasks are in the order in which they are found, algorithms as paper 2
  lists them, then by settings.

  Raises:
    ValueError: If there is no such run, if none of them has finished, or if one
      that has lacks a column.
  """
  runs = runs_lib.runs_of(table)
  wanted = [
      run for run in runs
      if run.settings.get('horizon') is not None
      and (not algorithms or run.settings.get('algorithm') in algorithms)
  ]
  if not wanted:
    raise ValueError(
        f'runs must hold a run of {", ".join(algorithms or symbols.ALGORITHMS)}'
        f'; found none among {len(runs)} runs.'
    )
  for run in wanted:
    if run.finished:
      _check_columns(run, columns)
  if not any(run.finished for run in wanted):
    raise ValueError(
        f'runs must hold a finished run, found none among {len(wanted)}.'
    )
  groups = group_runs(_without_repeated(wanted))
  tasks = [group.task for group in groups]
  return sorted(groups, key=lambda g: (tasks.index(g.task), *_order(g)))


def check_one_task(groups: Sequence[Group]) -> None:
  """Raises ValueError if the groups are not all of the same task."""
  tasks = sorted({group.task for group in groups})
  if len(tasks) > 1:
    raise ValueError(
        f'runs must be of one task in this figure, found {" and ".join(tasks)}.'
    )


def without_decay(
    groups: Sequence[Group], advice: str = ''
) -> list[Group]:
  """Returns the groups whose rates do not decay.

  Raises ValueError, with the advice, if there is none.
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
    groups: Sequence[Group],
    client_learning_rates: Optional[Sequence[float]] = None,
    server_learning_rate: Optional[float] = None,
) -> list[Group]:
  """Returns the groups with these gammas and this eta, where they are given.

  Groups of LocalUpdateDecay are kept whatever the gammas: what they start from
  is no gamma to compare. Raises ValueError if no group has this eta, or one of
  these gammas with it.
  """
  eta, gammas = server_learning_rate, client_learning_rates
  if eta is not None:
    _check_rates(RATES[1], [eta], {g.server_learning_rate for g in groups})
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


def with_equal_rates(groups: Sequence[Group]) -> list[Group]:
  """Returns the groups with eta = gamma; raises ValueError if there is none."""
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


def _check_columns(run: runs_lib.Run, columns: Sequence[str]) -> None:
  """Raises ValueError unless the run's metrics have all of the columns."""
  missing = [name for name in columns if name not in run.metrics]
  if missing:
    raise ValueError(
        f'runs must have the columns {", ".join(columns)} in metrics.csv; '
        f'{run.path} has no {", ".join(missing)}.'
    )


def _without_repeated(runs: Sequence[runs_lib.Run]) -> list[runs_lib.Run]:
  found: dict[tuple[Key, tuple[Any, ...]], runs_lib.Run] = {}
  for run in runs:
    same = found.setdefault((run.identity, run.seeds), run)
    if not same.finished and run.finished:
      found[run.identity, run.seeds] = run
  return list(found.values())


def _order(group: Group) -> tuple[Any, ...]:
  # Numbers by their size; values of one setting may be of several types.
  return symbols.algorithm_place(group.algorithm), [
      (name, isinstance(value, (int, float)), value)
      if isinstance(value, (int, float))
      else (name, False, str(value))
      for name, value in sorted(group.settings.items())
  ]


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
