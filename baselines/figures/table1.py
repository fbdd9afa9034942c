"""Clients and examples of each data set, beside the paper's (paper 1, Table 1).

Training splits only: test clients are not used in the experiments.
"""

from collections.abc import Sequence
import os
from typing import NamedTuple, Optional

import pandas as pd

from baselines.figures import load
from baselines.tasks import databases
from baselines.tasks import downloads
from baselines.tasks import registry


class DataSet(NamedTuple):
  """A row of Table 1.

  Attributes:
    name: As the paper has it.
    clients: Training clients, by TFF's documentation of its data sets; the
      paper's own table is not preserved.
    examples: Their examples, likewise.
    tasks: The tasks on it.
  """

  name: str
  clients: int
  examples: int
  tasks: tuple[str, ...]


DATA_SETS = (
    DataSet('FEMNIST', 3_400, 671_585, ('femnist', 'emnist_digits')),
    DataSet('CIFAR-100', 500, 50_000, ('cifar100',)),
    DataSet('Shakespeare', 715, 16_068, ('shakespeare',)),
    DataSet(
        'Stack Overflow', 342_477, 135_818_730,
        ('stackoverflow_tag', 'stackoverflow_word'),
    ),
)
_SOURCE = ('task', 'data_source', 'data_dir')
_NOT_RUN = 'not run'

NOTES = (
    "Training clients and examples, as stored: of TFF's original data sets, "
    'which the paper used, and of what the runs here read. Where the numbers '
    'differ, the data do. A dash: not known without generating the data.',
    'Shakespeare: examples are speeches, which the model reads in sequences of '
    '80 characters.',
)


def count_table(runs: Sequence[load.Run]) -> pd.DataFrame:
  """Returns the data sets, with the data that runs used.

  Args:
    runs: Runs of any tasks; those of other tasks than the paper's are left out.

  Returns:
    A row for each data set and each data that a run on it used, one row if
    there is none: `data_set`, `paper_clients`, `paper_examples`, `used` (task
    and source), `clients`, `examples` (floats, NaN if not known).

  Raises:
    FileNotFoundError: If data that a run used are no longer there.
    ValueError: If they are damaged, or no run is of a task of the paper.
  """
  known = {task for data_set in DATA_SETS for task in data_set.tasks}
  used = {
      tuple(run.settings.get(name) for name in _SOURCE): None
      for run in runs
      if run.settings.get('task') in known
  }
  if not used:
    raise ValueError(
        f'runs must hold a run of {", ".join(sorted(known))}; found none among '
        f'{len(runs)} runs.'
    )
  rows = []
  for data_set in DATA_SETS:
    found = _rows_of(data_set, [u for u in used if u[0] in data_set.tasks])
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


def _rows_of(data_set, used):
  """Returns text, clients and examples of each; tasks on one file are joined.
  """
  tasks: dict[tuple[Optional[str], ...], list[str]] = {}
  for task, source, folder in used:
    entry = registry.task_entry(task)
    # Digits and all classes are two parts of one file.
    part = entry.database and entry.database.train_split
    tasks.setdefault((part, source, folder), []).append(task)
  return [
      (
          f'{", ".join(sorted(names))} ({source})',
          *_count(names[0], source, folder),
      )
      for (_, source, folder), names in tasks.items()
  ]


def _count(task: str, source: str, folder: Optional[str]):
  entry = registry.task_entry(task)
  if source in entry.num_clients:
    return entry.num_clients[source], None
  if source == 'download':
    folder = downloads.download_dir(folder)
  databases.check_cache(entry.database, folder)
  path = os.path.join(folder, entry.database.file_name)
  _, counts = databases.stated_counts(path, entry.database.train_split)
  return len(counts), sum(counts)
