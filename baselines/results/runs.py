"""Reads run folders: settings, status and numbers, from JSON and CSV.

`load_runs` returns a table with one row per run and the columns

  path, run_id       the folder, and the name of the experiment
  each setting       by its name; missing where a run has no such setting
  settings           the same settings by component, as config.json has them
  status, reason     the word of status.json, and why a run failed or diverged
  round              the last round done
  time_used          queries of each client, of runs with a horizon
  first_population_loss, population_loss, test_accuracy   of the first and the
                     last evaluation
  last_loss          mean of loss_before_training over the last tenth of the
                     rounds, at most 100
  cumulative_regret, uplink_bits, downlink_bits   of the whole run
  seconds            time of all rounds and evaluations

`load_curves` returns columns of metrics.csv, one row per run and round. `Run`
is one row as an object, which `groups` and `ranking` work on.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import functools
import io
import json
import math
import pathlib
from typing import Any, Optional, Union

from baselines import command
from baselines.results import folder as folder_lib
from baselines.results import records
from baselines.settings import record

SEEDS = ('data_seed', 'model_seed', 'sampling_seed')
# How a run computes, which changes no result beyond rounding.
EXECUTION = ('jit', 'clients', 'devices', 'fast_paths')
NOT_STARTED = 'not started'
UNKNOWN = 'unknown'
# Settings in which repetitions may differ.
_IGNORED = (*SEEDS, 'rounds_per_checkpoint', 'require_gpu')
# The paper averages the last 100 rounds of its thousands; we never take more
# than a tenth of a run.
LAST_ROUNDS = 100
_FINAL = (
    'round', 'time_used', 'first_population_loss', 'population_loss',
    'test_accuracy', 'last_loss', 'cumulative_regret', 'uplink_bits',
    'downlink_bits', 'seconds',
)

# Settings by name, as a key: what several runs have in common.
Key = tuple[tuple[str, Any], ...]
_Path = Union[str, pathlib.Path]


@dataclasses.dataclass(frozen=True)
class Run:
  """One run.

  Attributes:
    components: The settings in use, by component (task, algorithm, run, ...)
      and name.
    status: The word of status.json, or `NOT_STARTED` or `UNKNOWN`.
    reason: Why it failed, or what diverged.
    final: The numbers that the run ended with, by the names of the columns
      above; None where there is no such number.
    config: The `ExperimentConfig`, unless another version wrote the record.
  """

  path: pathlib.Path
  components: Mapping[str, Mapping[str, Any]]
  status: str
  reason: str = ''
  final: Mapping[str, Optional[float]] = dataclasses.field(
      default_factory=dict
  )
  config: Any = None

  @functools.cached_property
  def settings(self) -> dict[str, Any]:
    """All settings in use, by name."""
    return {
        name: value
        for component in self.components.values()
        for name, value in component.items()
    }

  @functools.cached_property
  def identity(self) -> Key:
    """All settings but the seeds: runs that agree in it are repetitions."""
    return tuple(
        sorted((k, v) for k, v in self.settings.items() if k not in _IGNORED)
    )

  @property
  def seeds(self) -> tuple[Any, ...]:
    """The seeds: what tells repetitions apart."""
    return tuple(self.settings.get(name) for name in SEEDS)

  @property
  def finished(self) -> bool:
    """Whether the run has reached its end."""
    return self.status == folder_lib.FINISHED

  @property
  def diverged(self) -> bool:
    """Whether the run has diverged."""
    return self.status == folder_lib.DIVERGED

  @property
  def round(self) -> int:
    """The last round done."""
    return self.final['round']

  @property
  def run_id(self) -> str:
    """The name of the experiment: that of the folder if no config is known."""
    if self.config is not None:
      return record.run_id(self.config)
    return self.path.name

  @functools.cached_property
  def metrics(self) -> Any:
    """metrics.csv as a table, one row per round, empty cells as NaN."""
    import pandas as pd

    path = self.path / 'metrics.csv'
    if not path.exists():
      return pd.DataFrame({'round': []})
    text = path.read_text(errors='replace')
    # A run at work may have written a part of its next row.
    whole = io.StringIO(text[: text.rfind('\n') + 1])
    return pd.read_csv(whole, nrows=self.final.get('round', len(text)) + 1)

  def setting(self, name: str) -> Any:
    """Returns a setting, also one that is not recorded at its default."""
    if self.config is not None:
      return record.setting_value(self.config, name)
    return self.settings.get(name)


def load_runs(folders: Union[_Path, Sequence[_Path]]) -> Any:
  """Loads runs as a table, in the order of their names; see the module.

  The folders are run folders, or folders of them such as a sweep's; one or
  several. Raises ValueError if one has no run, or a run cannot be read.
  """
  if isinstance(folders, (str, pathlib.Path)):
    folders = [folders]
  return table_of(
      [run for folder in folders for run in read_runs(pathlib.Path(folder))]
  )


def load_curves(table: Any, columns: Sequence[str]) -> Any:
  """Loads columns of metrics.csv of a table's runs; NaN where a run has none.

  Returns a table with one row per run and round: `run`, the index of the run in
  `table`, `round`, and the columns.
  """
  import pandas as pd

  wanted = ['round', *(name for name in columns if name != 'round')]
  curves = [
      run.metrics.reindex(columns=wanted).assign(run=index)
      for index, run in zip(table.index, runs_of(table))
  ]
  found = pd.concat(curves, ignore_index=True) if curves else pd.DataFrame()
  return found.reindex(columns=['run', *wanted])


def table_of(runs: Sequence[Run]) -> Any:
  """Returns runs as a table; see the module for its columns."""
  import pandas as pd

  table = pd.DataFrame(
      [
          {
              'path': str(run.path), 'run_id': run.run_id,
              **(record.settings(run.config) if run.config else run.settings),
              'settings': run.components, 'status': run.status,
              'reason': run.reason,
          }
          for run in runs
      ],
      dtype=object,
  ).infer_objects()
  numbers = [[run.final.get(name) for name in _FINAL] for run in runs]
  found = pd.DataFrame(numbers, columns=list(_FINAL), dtype=float)
  return pd.concat([table, found.astype({'round': int})], axis=1)


def runs_of(table: Any) -> list[Run]:
  """Returns the rows of a table as `Run`s."""
  finals = table[list(_FINAL)].to_dict('records')
  return [
      Run(pathlib.Path(row.path), row.settings, row.status, row.reason, final)
      for row, final in zip(table.itertuples(), finals)
  ]


def read_runs(folder: pathlib.Path) -> list[Run]:
  """Reads the run folders in `folder`, or `folder` itself if it is one.

  Raises ValueError if there is no run folder, or one cannot be read.
  """
  if (folder / 'config.json').is_file():
    return [read_run(folder)]
  paths = sorted(p.parent for p in folder.glob('*/config.json'))
  if not paths:
    raise ValueError(
        f'runs must be a run folder or hold some; {folder} has no config.json, '
        'nor has any folder in it.'
    )
  return [read_run(path) for path in paths]


def read_run(path: pathlib.Path) -> Run:
  """Reads one run folder, whichever version has written it.

  Raises ValueError if config.json or metrics.csv cannot be read.
  """
  try:
    components = {
        name: dict(component.items())
        for name, component in json.loads(
            (path / 'config.json').read_text()
        )['settings'].items()
    }
    columns, rows = _read_metrics(path)
    if columns and columns[0] != 'round':
      raise ValueError('metrics.csv has no column round.')
  except (KeyError, TypeError, AttributeError) as error:
    raise ValueError(
        f'Run folder {path} cannot be read: its config.json is no record of '
        'a run.'
    ) from error
  except (OSError, ValueError) as error:
    raise ValueError(f'Run folder {path} cannot be read: {error}') from error
  status, reason = _read_status(path)
  try:
    config = folder_lib.RunFolder(path).read_config()
  except command.InputError:  # Another version: known by its settings alone.
    config = None
  found = Run(path, components, status, reason, config=config)
  rounds = None if found.diverged else found.settings.get('rounds')
  return dataclasses.replace(found, final=_final(rows, rounds))


def summarize(config: Any, folder: folder_lib.RunFolder) -> Run:
  """Reads the run of some settings, of which more may be wanted than there is.

  Raises `InputError` if the folder cannot be read.
  """
  with folder_lib.reading(folder.path):
    status = folder.read_status()
    _, rows = _read_metrics(folder.path)
  word = status.status if status else NOT_STARTED
  if word in folder_lib.ENDED:
    if not folder_lib.is_complete(status, config.run, rows):
      word = folder_lib.INTERRUPTED
  # A run that diverged has no more rounds, however many were wanted.
  rounds = None if word == folder_lib.DIVERGED else config.num_rounds
  return dataclasses.replace(
      unreadable(config, folder), status=word,
      reason=status.reason if status else '', final=_final(rows, rounds),
  )


def unreadable(config: Any, folder: folder_lib.RunFolder) -> Run:
  """Returns a run of these settings of which nothing else is known."""
  return Run(
      folder.path, record.to_tree(config), UNKNOWN, final=_final([], None),
      config=config,
  )


def closing_table(run: Run) -> str:
  """Returns the table that ends a single run, which has a config."""
  final, num_rounds = run.final, run.config.num_rounds
  rounds = f'{run.round}' + (f' of {num_rounds}' if num_rounds else '')
  cells = {
      'run': str(run.path),
      'status': status_text(run),
      'rounds': rounds,
      # One that the theory gave is in metrics.csv.
      **{n: '-' if r is None else r for n, r in run.config.rates.items()},
      'population_loss at first': _text(final['first_population_loss']),
      'population_loss': _text(final['population_loss']),
      'test_accuracy': _text(final['test_accuracy']),
      'loss_before_training, last mean': _text(final['last_loss']),
      'cumulative_regret': _text(final['cumulative_regret']),
      'uplink_bits': _text(final['uplink_bits']),
      'downlink_bits': _text(final['downlink_bits']),
      'seconds': f'{final["seconds"]:.1f}',
  }
  cells = {name: cell for name, cell in cells.items() if cell != '-'}
  width = max(map(len, cells)) + 2
  return '\n'.join(f'{name:{width}}{cell}' for name, cell in cells.items())


def status_text(run: Run) -> str:
  """Returns the status with the round and the reason where they matter."""
  if run.diverged:
    return f'diverged at round {run.round} ({run.reason})'
  if run.status == folder_lib.FAILED:
    return f'failed after round {run.round} ({run.reason})'
  return run.status


def last_values(
    values: Sequence[Optional[float]], rounds: int, last_rounds: int
) -> list[float]:
  """Returns the values of the last rounds, up to the last that has one.

  Those are `last_rounds` rounds, but at most a tenth of `rounds`, the run's
  length. A horizon may cut the last one short: its loss is None.
  """
  values = list(values)
  while values and values[-1] is None:
    del values[-1]
  last = values[-min(last_rounds, math.ceil(rounds / 10)) :]
  return [value for value in last if value is not None]


def _final(
    rows: Sequence[records.Row], rounds: Optional[int]
) -> dict[str, Optional[float]]:
  """Returns the numbers that a run of this many rounds ended with."""

  def column(name):
    cells = (records.number(row, name) for row in rows)
    return [cell for cell in cells if cell is not None]

  def last(name):
    return next(iter(column(name)[-1:]), None)

  if rows and 'cumulative_uplink_bits' in rows[0]:
    uplink = last('cumulative_uplink_bits')
  else:  # Each round has its own clients: the sum of their means.
    uplink = math.fsum(column('uplink_bits')) if column('uplink_bits') else None
  done = max(len(rows) - 1, 0)
  losses = last_values(
      [records.number(row, 'loss_before_training') for row in rows],
      rounds or max(done, 1), LAST_ROUNDS,
  )
  return {
      'round': done,
      'time_used': last('time_used'),
      'first_population_loss': (
          records.number(rows[0], 'population_loss') if rows else None
      ),
      'population_loss': last('population_loss'),
      'test_accuracy': last('test_accuracy'),
      'last_loss': sum(losses) / len(losses) if losses else None,
      'cumulative_regret': last('cumulative_regret'),
      'uplink_bits': uplink,
      'downlink_bits': last('cumulative_downlink_bits'),
      'seconds': sum(column('round_seconds') + column('evaluation_seconds')),
  }


def _read_metrics(
    path: pathlib.Path,
) -> tuple[list[str], list[records.Row]]:
  """Returns the columns and the whole rows; none of a run without rounds."""
  path = path / 'metrics.csv'
  if not path.exists():
    return [], []
  with open(path, encoding='utf-8', errors='replace') as stream:
    head = stream.readline()
  columns = head.rstrip('\r\n').split(',') if head.endswith('\n') else []
  return columns, records.read_rows(path, columns) if columns else []


def _read_status(path: pathlib.Path) -> tuple[str, str]:
  try:
    found = json.loads((path / 'status.json').read_text())
    return found['status'], found.get('reason', '')
  except (OSError, ValueError, KeyError, TypeError, AttributeError):
    return UNKNOWN, ''


def _text(value: Optional[float]) -> str:
  return '-' if value is None else f'{value:.4f}'
