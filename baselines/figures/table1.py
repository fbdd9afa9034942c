"""Clients and examples of each data set, beside the paper's (paper 1, Table 1).

Training splits only: test clients are not used in the experiments.
"""

import argparse
from collections.abc import Mapping, Sequence
import os
import pathlib
from typing import NamedTuple, Optional

import pandas as pd

from baselines.figures import tables
from baselines.results import runs as runs_lib
from baselines.tasks import databases
from baselines.tasks import downloads
from baselines.tasks import registry


class DataSet(NamedTuple):
  """A row of Table 1, named as in the paper, with the tasks on it.

  Its training clients and examples are by TFF's documentation of its data sets;
  the paper's own table is not preserved.
  """

  name: str
  clients: int
  examples: int
  tasks: tuple[str, ...]


class _Data(NamedTuple):
  """What a run read its examples from: its settings of these names."""

  task: str
  data_source: str
  data_dir: Optional[str]

  @property
  def is_stored(self) -> bool:
    """Whether the examples are in a database, and not generated."""
    return self.data_source not in registry.task_entry(self.task).num_clients


DATA_SETS = (
    DataSet('FEMNIST', 3_400, 671_585, ('femnist', 'emnist_digits')),
    DataSet('CIFAR-100', 500, 50_000, ('cifar100',)),
    DataSet('Shakespeare', 715, 16_068, ('shakespeare',)),
    DataSet(
        'Stack Overflow', 342_477, 135_818_730,
        ('stackoverflow_tag', 'stackoverflow_word'),
    ),
)
_NOT_RUN = 'not run'

NOTES = (
    "Training clients and examples, as stored: of TFF's original data sets, "
    'which the paper used, and of what the runs here read. Where the numbers '
    'differ, the data do. A dash: not known without generating the data.',
    'Shakespeare: examples are speeches, which the model reads in sequences of '
    '80 characters.',
)


def table1(runs: pd.DataFrame, options: argparse.Namespace) -> tables.Drawn:
  """Clients and examples of each data set (Table 1)."""
  table = count_table(runs_lib.runs_of(runs), options.data_dir)
  return tables.Drawn(table, texts=count_texts(table), notes=NOTES)


def count_table(
    runs: Sequence[runs_lib.Run], data_dir: Optional[str] = None
) -> pd.DataFrame:
  """Returns the data sets, with the data that runs used.

  Runs of other tasks than the paper's are left out. `data_dir` is the folder
  that now holds the databases that runs used; by default each run's own
  data_dir, where the command is at work if it is relative.

  Returns:
    A row for each data set and each data that a run on it used, one row if
    there is none: `data_set`, `paper_clients`, `paper_examples`, `used` (task
    and source), `clients`, `examples` (floats, NaN if not known).

  Raises:
    FileNotFoundError: If data that a run used are no longer there.
    ValueError: If they are damaged, no run is of a task of the paper, or
      `data_dir` is given and no run used a database.
  """
  known = {task for data_set in DATA_SETS for task in data_set.tasks}
  used = _used_data([r for r in runs if r.settings.get('task') in known])
  if not used:
    raise ValueError(
        f'runs must hold a run of {", ".join(sorted(known))}; found none among '
        f'{len(runs)} runs.'
    )
  if data_dir is not None:
    if not any(data.is_stored for data in used):
      raise ValueError(
          'data_dir would be ignored: no run used a database, found '
          f'{data_dir!r}.'
      )
    used = {
        data._replace(data_dir=data_dir) if data.is_stored else data: path
        for data, path in used.items()
    }
  rows = []
  for data_set in DATA_SETS:
    found = _rows_of({
        data: path for data, path in used.items() if data.task in data_set.tasks
    })
    for row in found or [(_NOT_RUN, None, None)]:
      rows.append((data_set.name, data_set.clients, data_set.examples, *row))
  table = pd.DataFrame(rows, columns=[
      'data_set', 'paper_clients', 'paper_examples', 'used', 'clients',
      'examples',
  ])
  return table.astype({'clients': float, 'examples': float})


def count_texts(table: pd.DataFrame) -> pd.DataFrame:
  """Returns what `count_table` returns as texts to be read."""
  texts = table.rename(columns=lambda name: name.replace('_', ' '))
  for name in ('paper clients', 'paper examples', 'clients', 'examples'):
    texts[name] = [
        '-' if number != number else f'{number:,.0f}' for number in texts[name]
    ]
  return texts


def _used_data(runs: Sequence[runs_lib.Run]) -> dict[_Data, pathlib.Path]:
  """Returns the data that runs used, each with the first run that did."""
  used: dict[_Data, pathlib.Path] = {}
  for run in runs:
    data = _Data(*(run.settings.get(name) for name in _Data._fields))
    used.setdefault(data, run.path)
  return used


def _rows_of(used: Mapping[_Data, pathlib.Path]):
  """Returns text, clients and examples of each; tasks on one file are joined.
  """
  same: dict[tuple[Optional[str], ...], list[_Data]] = {}
  for data in used:
    database = registry.task_entry(data.task).database
    # Digits and all classes are two parts of one file.
    part = database and database.train_split
    same.setdefault((part, *data[1:]), []).append(data)
  return [
      (
          f'{", ".join(sorted(data.task for data in joined))} '
          f'({joined[0].data_source})',
          *_count(joined[0], used[joined[0]]),
      )
      for joined in same.values()
  ]


def _count(data: _Data, run_path: pathlib.Path):
  """Returns the numbers of training clients and of examples."""
  entry = registry.task_entry(data.task)
  if not data.is_stored:
    return entry.num_clients[data.data_source], None
  folder = data.data_dir
  if data.data_source == 'download':
    folder = downloads.download_dir(folder)
  name = entry.database.file_name
  try:
    databases.check_cache(entry.database, folder)
    path = os.path.join(folder, name)
    _, counts = databases.stated_counts(path, entry.database.train_split)
  except FileNotFoundError as error:
    # What it says would be right for a run: train where the data are.
    raise FileNotFoundError(
        f'Run {run_path} was trained on {name}, whose clients and examples '
        f'this table counts; there is none in data_dir {_place(folder)}. Give '
        f'--data_dir, the folder that holds {name} now.'
    ) from error
  except ValueError as error:
    raise ValueError(
        f'Run {run_path} was trained on {name}, whose clients and examples '
        f'this table counts: {error}'
    ) from error
  return len(counts), sum(counts)


def _place(folder: str) -> str:
  """Returns a folder as text, and what a relative one is relative to."""
  if os.path.isabs(folder):
    return repr(folder)
  return f'{folder!r}, relative to the working directory, {os.getcwd()}'
