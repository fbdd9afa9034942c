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
  num_queries                 queries of each client; a query is the gradient of
                              a batch. Clients with fewer batches than others,
                              in epochs, wait for the one with the most
  time_used                   those of all rounds so far
  sent                        1 if anything was sent
  uplink_bits                 bits that a client sent, mean over the clients; a
                              float takes 32 or 64 where nothing is quantized
  downlink_bits               bits broadcast, each broadcast counted once
  cumulative_uplink_bits, cumulative_downlink_bits   of all rounds so far
  clients_not_sent            clients without a message for what they had
  population_loss             f(x): client-uniform mean over training clients
  example_weighted_loss       mean over all training examples
  test_loss, test_accuracy    on the held-out examples, if the task has them

Runs whose rates decay also have

  average_loss                the loss before training over the rule's window
  client_decays, server_decays   how often the rates have decayed, this round
                              included

CEAL also has, of the round

  epoch, stage, stepped, estimated_gradient_norm, threshold, rounding_norm,
  passes_by_rounding          see `tff_localupdate.ceal.server_step.CealMetrics`
  true_gradient_norm          |grad f| before the round, if f is known

Runs whose regret is counted also have

  cumulative_regret           sum of f - f* over all queries of all clients
  last_regret                 f - f* of the model after the round
  average_regret              f - f* of the mean of all query points
  regret_points               points at which f was evaluated for the regret

and all runs have

  round_seconds               the round, waiting for its data included
  evaluation_seconds          the evaluation
  resident_mib                memory of the process after the row's work

Runs of earlier versions lack `num_queries` and what follows it up to
`clients_not_sent`, unless of CEAL and its rivals; their files keep the columns
that they have.

An empty cell means that there is no such number (no client had examples, no
evaluation was due); `nan` means that the computation gave that.
"""

import csv
import io
import os
import pathlib
from typing import Any, Mapping, Optional, Sequence

import numpy as np

from baselines import command
from baselines import files
from baselines.settings import algorithms

TRAINING_COLUMNS = algorithms.TRAINING
EVALUATION_COLUMNS = (
    'population_loss',
    'example_weighted_loss',
    'test_loss',
    'test_accuracy',
)
REGRET_COLUMNS = (
    'cumulative_regret',
    'last_regret',
    'average_regret',
    'regret_points',
)
# The columns that differ between two runs of the same experiment.
MACHINE_COLUMNS = ('round_seconds', 'evaluation_seconds', 'resident_mib')

Row = dict[str, str]


def columns_of(config: Any) -> tuple[str, ...]:
  """Returns the columns of the metrics.csv of an `ExperimentConfig`."""
  return (
      'round',
      *TRAINING_COLUMNS,
      *algorithms.MESSAGES,
      *config.algorithm.extra_columns,
      *(algorithms.DECAY if config.rate and config.rate.decays else ()),
      *(REGRET_COLUMNS if config.counts_regret else ()),
      *EVALUATION_COLUMNS,
      *MACHINE_COLUMNS,
  )


class MetricsWriter:
  """Appends rows to metrics.csv, each flushed when it is written."""

  def __init__(
      self, path: pathlib.Path, columns: Sequence[str], kept: Sequence[Row]
  ):
    """Starts or continues a file, which `kept` replaces as a whole.

    The columns are those of `kept` (of `read_rows`) if there are any.
    """
    self._all_columns = tuple(columns)
    if kept:
      columns = tuple(kept[0])
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator='\n')
    writer.writeheader()
    writer.writerows(kept)
    files.write_whole(path, text.getvalue())
    self._path = path
    self._stream = open(path, 'a', newline='', encoding='utf-8')
    self._writer = csv.DictWriter(self._stream, columns, lineterminator='\n')
    self._columns = tuple(columns)

  def write(self, values: Mapping[str, Any]) -> Row:
    """Writes a row, returned as written: numbers, or texts of them, by column.

    A missing or None value is an empty cell.
    """
    row = format_row(values, self._all_columns)
    row = {column: row[column] for column in self._columns}
    self._writer.writerow(row)
    self._stream.flush()
    return row

  def flush_to_disk(self) -> None:
    """Makes the rows survive a crash of the machine, not only of the run.

    Raises FileNotFoundError if the file was removed or replaced meanwhile.
    """
    os.fsync(self._stream.fileno())
    if not self._path.exists() or not os.path.samestat(
        os.fstat(self._stream.fileno()), os.stat(self._path)
    ):
      raise FileNotFoundError(
          f'{self._path} was removed or replaced while the run was at work.'
      )

  def close(self) -> None:
    self._stream.close()


def format_row(values: Mapping[str, Any], columns: Sequence[str]) -> Row:
  """Returns the row of texts for numbers by column."""
  unknown = set(values) - set(columns)
  if unknown:
    raise ValueError(f'values has no such columns: {sorted(unknown)}.')
  return {column: _cell(values.get(column)) for column in columns}


def read_rows(path: pathlib.Path, columns: Sequence[str]) -> list[Row]:
  """Returns the rows 0, 1, 2, ... up to the last one that is whole.

  A file that is not there, or whose header was torn, has none; it may lack the
  columns of messages. Raises `InputError` if it has other columns.
  """
  if not path.exists():
    return []
  text = path.read_text(errors='replace')
  lines = text[: text.rfind('\n') + 1].splitlines()
  if not lines:
    return []
  found = lines[0].split(',')
  if not _is_order_of(found, columns):
    raise command.InputError(
        f'{path} does not have the columns of this version.'
    )
  rows = []
  columns = found
  # No cell is quoted: a quote is damage, and must not join lines.
  for cells in csv.reader(lines[1:], quoting=csv.QUOTE_NONE):
    if len(cells) != len(columns) or cells[0] != str(len(rows)):
      break
    if not all(_is_number(cell) for cell in cells if cell):
      break
    rows.append(dict(zip(columns, cells)))
  return rows


def _is_order_of(found: Sequence[str], columns: Sequence[str]) -> bool:
  """Whether a header has the columns, those of messages perhaps missing."""
  missing = set(columns) - set(found)
  return missing <= set(algorithms.MESSAGES) and sorted(found) == sorted(
      set(columns) - missing
  )


def number(row: Row, column: str) -> Optional[float]:
  """Returns the number in a cell, or None if it is empty or not there."""
  return float(row[column]) if row.get(column) else None


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
