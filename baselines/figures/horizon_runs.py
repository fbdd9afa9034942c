"""Runs of CEAL and its rivals: repetitions, their names, what is said of them.

Runs that differ in seeds only are one group, and a figure shows its mean. Only
runs that have finished enter a mean: all of those reach the same horizon. The
others are counted, and every caption tells of them.
"""

from collections.abc import Collection, Sequence
import dataclasses
import pathlib
from typing import Any

from baselines.figures import load
from baselines.figures import symbols

_FINISHED = 'finished'
# Settings of the run that change no regret and no bits.
_NO_RESULT = ('rounds_per_evaluation', 'rounds_per_checkpoint')

Key = tuple[tuple[str, Any], ...]


@dataclasses.dataclass(frozen=True, eq=False)
class RunGroup:
  """Runs that differ in seeds only; there is at least one.

  Attributes:
    all_runs: The runs, whatever became of them.
  """

  all_runs: tuple[load.Run, ...]

  @property
  def runs(self) -> list[load.Run]:
    """Those that have finished, which a mean is taken of."""
    return [run for run in self.all_runs if run.status == _FINISHED]

  @property
  def num_diverged(self) -> int:
    """How many have diverged."""
    return sum(run.diverged for run in self.all_runs)

  @property
  def num_unfinished(self) -> int:
    """How many have neither finished nor diverged."""
    return len(self.all_runs) - len(self.runs) - self.num_diverged

  @property
  def settings(self) -> dict[str, Any]:
    """All settings but those that may differ among the runs, by name."""
    return dict(self.all_runs[0].identity)

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
    components = self.all_runs[0].components
    shared = {**components.get('task', {}), **components.get('run', {})}
    names = set(self.settings) & set(shared) - set(_NO_RESULT) | {'horizon'}
    return tuple(sorted((n, self.settings.get(n)) for n in names))


def load_groups(
    folders: Sequence[pathlib.Path],
    columns: Sequence[str],
    algorithms: Collection[str] = tuple(symbols.ALGORITHMS),
) -> list[RunGroup]:
  """Loads runs and groups repetitions.

  Runs of equal settings and seeds, as two sweeps may have, count as one: the
  first that has finished.

  Args:
    folders: Run folders, or folders of run folders.
    columns: Columns of metrics.csv that are needed.
    algorithms: The algorithms that are wanted; runs of others are left out.

  Returns:
    The groups: tasks in the order in which they are found, algorithms as paper
    2 lists them, then by settings.

  Raises:
    ValueError: If there is no run of these algorithms, if none of them has
      finished, or if one that has lacks a column.
  """
  runs = load.load_all(folders)
  wanted = [r for r in runs if r.settings.get('algorithm') in algorithms]
  if not wanted:
    raise ValueError(
        f'runs must hold a run of {", ".join(algorithms)}; found none among '
        f'{len(runs)} runs.'
    )
  for run in wanted:
    if run.status == _FINISHED:
      load.check_columns(run, columns)
  if not any(run.status == _FINISHED for run in wanted):
    raise ValueError(
        f'runs must hold a finished run, found none among {len(wanted)}.'
    )
  groups: dict[Key, list[load.Run]] = {}
  for run in _without_repeated(wanted):
    groups.setdefault(run.identity, []).append(run)
  found_groups = [RunGroup(tuple(same)) for same in groups.values()]
  tasks = [group.task for group in found_groups]
  return sorted(found_groups, key=lambda g: (tasks.index(g.task), *_order(g)))


def check_one_task(groups: Sequence[RunGroup]) -> None:
  """Raises ValueError if the groups are not all of the same task."""
  tasks = sorted({group.task for group in groups})
  if len(tasks) > 1:
    raise ValueError(
        f'runs must be of one task in this figure, found {" and ".join(tasks)}.'
    )


def varied_settings(
    groups: Sequence[RunGroup], ignored: Collection[str] = ()
) -> list[str]:
  """Returns the settings that some of the groups differ in, sorted.

  A setting that a group does not have differs from all values.

  Args:
    groups: The groups.
    ignored: Settings to be left out.
  """
  names = {name for group in groups for name in group.settings}
  return sorted(
      name
      for name in names - set(ignored)
      if len({repr(group.settings.get(name)) for group in groups}) > 1
  )


def name_groups(
    groups: Sequence[RunGroup], ignored: Collection[str] = ()
) -> list[str]:
  """Returns the names of groups: the algorithm, and what else tells them apart.

  Settings are named if groups of the same task and algorithm differ in them;
  those of the experiment also if groups of other algorithms do.

  Args:
    groups: The groups.
    ignored: Settings that a figure shows by other means.
  """
  tasks = [group.task for group in groups]  # Each has names of its own.
  named = symbols.distinct(
      lambda digits: list(zip(tasks, _names(groups, ignored, digits)))
  )
  return [name for _, name in named]


def _names(
    groups: Sequence[RunGroup], ignored: Collection[str], digits: int
) -> list[str]:
  names = []
  for group in groups:
    others = [g for g in groups if g.task == group.task]
    same = [g for g in others if g.algorithm == group.algorithm]
    varied = set(varied_settings(same, ignored))
    varied |= set(varied_settings(others, ignored)) & set(
        dict(group.experiment)
    )
    parts = [symbols.ALGORITHMS[group.algorithm]]
    parts += [
        setting_text(name, group.settings[name], digits)
        for name in sorted(varied)
        if name in group.settings
    ]
    names.append(', '.join(parts))
  return names


def setting_text(
    name: str, value: Any, digits: int = symbols.DIGITS[0]
) -> str:
  """Returns a setting and its value as they are named in tables."""
  is_number = isinstance(value, float)
  return f'{name} {symbols.number_text(value, digits) if is_number else value}'


def describe(groups: Sequence[RunGroup]) -> list[str]:
  """Returns what a caption says of the runs.

  That is the task, the horizon, how many runs there are and of which seeds, at
  which queries f was evaluated unless at all of them, and what is left out.
  """
  finished = [run for group in groups for run in group.runs]
  counts = sorted({len(group.runs) for group in groups if group.runs})
  parts = [f'task {task}' for task in dict.fromkeys(g.task for g in groups)]
  parts.append(f'T = {_values_text(groups, "horizon", ", ")}')
  each = '-'.join(str(n) for n in (counts[0], counts[-1])[: len(counts)])
  parts.append(f'mean of {each} run{"s" if counts[-1] > 1 else ""} each')
  seeds = {run.settings['sampling_seed'] for run in finished}
  parts.append(f'sampling seeds {_ranges_text(seeds)}')
  data_seeds = {run.settings.get('data_seed') for run in finished} - {None}
  if len(data_seeds) > 1:
    parts.append(f'data seeds {_ranges_text(data_seeds)}')
  if {group.settings.get('regret_every') for group in groups} - {1, None}:
    every = _values_text(groups, 'regret_every', ' or ')
    parts.append(
        f'f evaluated at the middle of every {every} queries of clients that '
        'move between queries'
    )
  return parts + _describe_missing(groups)


def describe_tasks(groups: Sequence[RunGroup]) -> list[str]:
  """Returns a sentence for each task: what `describe` says of its runs."""
  tasks = dict.fromkeys(group.task for group in groups)
  return [
      f'Runs: {"; ".join(describe([g for g in groups if g.task == task]))}.'
      for task in tasks
  ]


def _describe_missing(groups: Sequence[RunGroup]) -> list[str]:
  parts = []
  for word in ('diverged', 'unfinished'):
    counts = [getattr(group, f'num_{word}') for group in groups]
    texts = [
        f'{count} of {len(group.all_runs)} {name}'
        for group, name, count in zip(groups, name_groups(groups), counts)
        if count
    ]
    if texts:
      parts.append(f'{word} and left out: {"; ".join(texts)}')
  return parts


def _without_repeated(runs: Sequence[load.Run]) -> list[load.Run]:
  found: dict[tuple[Key, tuple[Any, ...]], load.Run] = {}
  for run in runs:
    same = found.setdefault((run.identity, run.seeds), run)
    if same.status != _FINISHED and run.status == _FINISHED:
      found[run.identity, run.seeds] = run
  return list(found.values())


def _order(group: RunGroup) -> tuple[Any, ...]:
  place = list(symbols.ALGORITHMS).index(group.algorithm)
  # Numbers by their size; values of one setting may be of several types.
  return place, [
      (name, isinstance(value, (int, float)), value)
      if isinstance(value, (int, float))
      else (name, False, str(value))
      for name, value in sorted(group.settings.items())
  ]


def _values_text(
    groups: Sequence[RunGroup], name: str, separator: str
) -> str:
  values = {group.settings.get(name) for group in groups} - {None}
  return separator.join(str(value) for value in sorted(values))


def _ranges_text(numbers: Collection[int]) -> str:
  """Returns whole numbers as text, neighbours as a range."""
  ranges: list[list[int]] = []
  for number in sorted(numbers):
    if ranges and number == ranges[-1][-1] + 1:
      ranges[-1].append(number)
    else:
      ranges.append([number])
  return ', '.join(
      f'{r[0]}-{r[-1]}' if len(r) > 1 else str(r[0]) for r in ranges
  )
