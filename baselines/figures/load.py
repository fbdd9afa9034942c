"""Reads run folders: JSON and CSV only, so it needs no TensorFlow."""

import dataclasses
import functools
import io
import json
import pathlib
from typing import Any, Sequence

import pandas as pd

SEEDS = ('data_seed', 'model_seed', 'sampling_seed')
# Settings that may differ between curves that are drawn as one.
_IGNORED = (*SEEDS, 'rounds_per_checkpoint', 'require_gpu')


@dataclasses.dataclass(frozen=True, eq=False)
class Run:
  """One run folder.

  Attributes:
    path: The folder.
    components: The settings in use, by component (task, algorithm, run, ...)
      and name.
    status: The word of status.json, `unknown` without one.
    metrics: metrics.csv, one row per round, empty cells as NaN; no rows of a
      run that failed before it had any.
  """

  path: pathlib.Path
  components: dict[str, dict[str, Any]]
  status: str
  metrics: pd.DataFrame

  @functools.cached_property
  def settings(self) -> dict[str, Any]:
    """All settings in use, by name."""
    return {
        name: value
        for component in self.components.values()
        for name, value in component.items()
    }

  @property
  def diverged(self) -> bool:
    """Whether the run has diverged."""
    return self.status == 'diverged'

  @property
  def identity(self) -> tuple[tuple[str, Any], ...]:
    """All settings but the seeds: runs that agree in it are repetitions."""
    return tuple(
        sorted((k, v) for k, v in self.settings.items() if k not in _IGNORED)
    )

  @property
  def seeds(self) -> tuple[Any, ...]:
    """The seeds: what tells repetitions apart."""
    return tuple(self.settings.get(name) for name in SEEDS)


def load_runs(folder: pathlib.Path) -> list[Run]:
  """Loads the run folders in `folder`, or `folder` itself if it is one.

  Args:
    folder: A run folder, or a folder of run folders such as a sweep's.

  Returns:
    The runs in the order of their names.

  Raises:
    ValueError: If there is no run folder, or one cannot be read.
  """
  if (folder / 'config.json').is_file():
    return [load_run(folder)]
  paths = sorted(p.parent for p in folder.glob('*/config.json'))
  if not paths:
    raise ValueError(
        f'runs must be a run folder or hold some; {folder} has no config.json, '
        'nor has any folder in it.'
    )
  return [load_run(path) for path in paths]


def load_all(folders: Sequence[pathlib.Path]) -> list[Run]:
  """Loads the runs of several folders; see `load_runs`."""
  return [run for folder in folders for run in load_runs(folder)]


def load_run(path: pathlib.Path) -> Run:
  """Loads one run folder.

  Raises:
    ValueError: If config.json or metrics.csv cannot be read.
  """
  try:
    record = json.loads((path / 'config.json').read_text())
    components = {
        name: dict(component.items())
        for name, component in record['settings'].items()
    }
    metrics = _read_metrics(path / 'metrics.csv')
  except (KeyError, TypeError, AttributeError) as error:
    raise ValueError(
        f'Run folder {path} cannot be read: its config.json is no record of '
        'a run.'
    ) from error
  except (OSError, ValueError) as error:
    raise ValueError(f'Run folder {path} cannot be read: {error}') from error
  return Run(path, components, _read_status(path / 'status.json'), metrics)


def check_columns(run: Run, columns: Sequence[str]) -> None:
  """Raises ValueError unless the run's metrics have all of the columns."""
  missing = [name for name in columns if name not in run.metrics]
  if missing:
    raise ValueError(
        f'runs must have the columns {", ".join(columns)} in metrics.csv; '
        f'{run.path} has no {", ".join(missing)}.'
    )


def check_distinct(runs: Sequence[Run]) -> None:
  """Raises ValueError if two runs have equal settings and seeds."""
  found: dict[Any, Run] = {}
  for run in runs:
    same = found.setdefault((run.identity, run.seeds), run)
    if same is not run:
      raise ValueError(
          f'runs must not repeat a run; {same.path} and {run.path} have equal '
          'settings and seeds.'
      )


def varying(runs: Sequence[Run], names: Sequence[str]) -> list[str]:
  """Returns those of the settings `names` that differ among `runs`."""
  return [
      name
      for name in names
      if len({repr(run.settings.get(name)) for run in runs}) > 1
  ]


def _read_metrics(path: pathlib.Path) -> pd.DataFrame:
  if not path.exists():
    return pd.DataFrame({'round': []})
  text = path.read_text()
  # A run at work may have written a part of its next row.
  whole = text[: text.rfind('\n') + 1]
  metrics = pd.read_csv(io.StringIO(whole))
  if 'round' not in metrics:
    raise ValueError('metrics.csv has no column round.')
  return metrics


def _read_status(path: pathlib.Path) -> str:
  try:
    return json.loads(path.read_text())['status']
  except (OSError, ValueError, KeyError, TypeError):
    return 'unknown'
