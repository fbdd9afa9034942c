"""metrics.csv: one row per round, whole after every round.

Row 0 is the model before training: its training columns are empty. Row r holds
the metrics of round r (its loss is the one before the round's training) and,
where the schedule asks for it, the evaluation of the model after round r.

  round                       r
  client_learning_rate        gamma of the round
  server_learning_rate        eta of the round
  loss_before_training        f_t: mean over the round's non-empty clients
  update_norm                 Euclidean norm of q_t
  clients_used                clients whose update entered the mean
  clients_empty               clients without examples, left out of the mean
  clients_non_finite          clients whose update is not finite; not repaired
  examples_used               examples drawn in the round
  population_loss             f(x): client-uniform mean over training clients
  example_weighted_loss       mean over all training examples
  test_loss, test_accuracy    on the held-out examples, if the task has them
  round_seconds               the round, waiting for its data included
  evaluation_seconds          the evaluation
  resident_mib                memory of the process after the row's work

An empty cell means that there is no such number (no client had examples, no
evaluation was due); `nan` means that the computation gave that.
"""

import csv
import io
import os
import pathlib
from typing import Any, Mapping, Optional, Sequence

import numpy as np

from baselines.experiment import command
from baselines.experiment import files

TRAINING_COLUMNS = (
    'client_learning_rate',
    'server_learning_rate',
    'loss_before_training',
    'update_norm',
    'clients_used',
    'clients_empty',
    'clients_non_finite',
    'examples_used',
)
EVALUATION_COLUMNS = (
    'population_loss',
    'example_weighted_loss',
    'test_loss',
    'test_accuracy',
)
# The columns that differ between two runs of the same experiment.
MACHINE_COLUMNS = ('round_seconds', 'evaluation_seconds', 'resident_mib')
COLUMNS = ('round', *TRAINING_COLUMNS, *EVALUATION_COLUMNS, *MACHINE_COLUMNS)

Row = dict[str, str]


class MetricsWriter:
  """Appends rows to metrics.csv, each flushed when it is written."""

  def __init__(self, path: pathlib.Path, kept: Sequence[Row]):
    """Starts or continues a file.

    Args:
      path: The file; replaced as a whole by `kept`.
      kept: The rows to keep, as `read_rows` gave them.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator='\n')
    writer.writeheader()
    writer.writerows(kept)
    files.write_whole(path, text.getvalue())
    self._stream = open(path, 'a', newline='', encoding='utf-8')
    self._writer = csv.DictWriter(self._stream, COLUMNS, lineterminator='\n')

  def write(self, values: Mapping[str, Any]) -> Row:
    """Writes one row.

    Args:
      values: Numbers, or texts of numbers, by column; a missing or None value
        is an empty cell.

    Returns:
      The row as it was written.
    """
    row = format_row(values)
    self._writer.writerow(row)
    self._stream.flush()
    return row

  def flush_to_disk(self) -> None:
    """Makes the rows survive a crash of the machine, not only of the run."""
    os.fsync(self._stream.fileno())

  def close(self) -> None:
    self._stream.close()


def format_row(values: Mapping[str, Any]) -> Row:
  """Returns the row of texts for numbers by column."""
  unknown = set(values) - set(COLUMNS)
  if unknown:
    raise ValueError(f'values has no such columns: {sorted(unknown)}.')
  return {column: _cell(values.get(column)) for column in COLUMNS}


def read_rows(path: pathlib.Path) -> list[Row]:
  """Returns the rows 0, 1, 2, ... up to the last one that is whole.

  A file that is not there, or whose header was torn, has none.

  Raises:
    command.InputError: If the file has other columns.
  """
  if not path.exists():
    return []
  text = path.read_text(errors='replace')
  lines = text[: text.rfind('\n') + 1].splitlines()
  if not lines:
    return []
  if lines[0] != ','.join(COLUMNS):
    raise command.InputError(f'{path} has not the columns of this version.')
  rows = []
  for cells in csv.reader(lines[1:]):
    if len(cells) != len(COLUMNS) or cells[0] != str(len(rows)):
      break
    if not all(_is_number(cell) for cell in cells if cell):
      break
    rows.append(dict(zip(COLUMNS, cells)))
  return rows


def number(row: Row, column: str) -> Optional[float]:
  """Returns the number in a cell, or None if it is empty."""
  return float(row[column]) if row[column] else None


def without_evaluation(row: Row) -> Row:
  """Returns `row` as it is where no evaluation is due."""
  empty = dict.fromkeys((*EVALUATION_COLUMNS, 'evaluation_seconds'), '')
  return {**row, **empty}


def _cell(value: Any) -> str:
  if value is None:
    return ''
  if isinstance(value, str):
    return value
  # The shortest text that reads back to the same number in its own precision.
  if isinstance(value, (np.floating, np.integer)):
    return str(value)
  return repr(value)


def _is_number(text: str) -> bool:
  try:
    float(text)
  except ValueError:
    return False
  return True
