"""Everything that a run tells while it runs: rows, events and progress.

`Recorder` writes the rows of metrics.csv, gives the same numbers to TensorBoard
(`EventWriter`) and to the screen (`Progress`), and judges whether the run has
diverged.
"""

import contextlib
import os
import pathlib
import resource
import shutil
import socket
import sys
import time
from typing import Any, Mapping, Optional, Sequence
import warnings

from baselines import command
from baselines.results import folder as folder_lib
from baselines.results import records
from baselines.settings import experiment
from baselines.settings import record
from baselines.training import stopping

# Columns of no other group are of the training.
_GROUPS = {
    **dict.fromkeys(records.REGRET_COLUMNS, 'regret'),
    **dict.fromkeys(records.EVALUATION_COLUMNS, 'evaluation'),
    **dict.fromkeys(records.MACHINE_COLUMNS, 'machine'),
}


class EventWriter:
  """Writes one summary per round. Imports TensorFlow when it is made.

  TensorBoard's files are TFRecords of Event protos. To write those costs an
  eighth of what the operations of `tf.summary` do, and a round may take half a
  millisecond.
  """

  def __init__(self, folder: pathlib.Path):
    import tensorflow as tf  # pylint: disable=g-import-not-at-top

    self._proto = tf.compat.v1
    folder.mkdir(parents=True, exist_ok=True)
    # A run that goes on has another file; TensorBoard sorts them by name.
    seconds, fraction = divmod(time.time_ns(), 10**9)
    self._writer = tf.io.TFRecordWriter(str(
        folder / f'events.out.tfevents.{seconds}.{fraction:09d}'
                 f'.{socket.gethostname()}.{os.getpid()}'
    ))
    self._write(self._event(file_version='brain.Event:2'))

  def write_settings(self, config: Any, name: str) -> None:
    """Gives TensorBoard's HParams plugin the settings and the run's name."""
    from tensorboard.plugins.hparams import api  # pylint: disable=g-import-not-at-top

    summary = api.hparams_pb(record.settings(config), trial_id=name)
    event = self._event(step=0)
    event.summary.ParseFromString(summary.SerializeToString())
    self._write(event)

  def write(self, row: records.Row) -> None:
    """Writes the numbers of a row, under the row's round as the step."""
    event = self._event(step=int(row['round']))
    for column in row:
      value = records.number(row, column)
      if value is not None and column != 'round':
        group = _GROUPS.get(column, 'training')
        event.summary.value.add(tag=f'{group}/{column}', simple_value=value)
    self._write(event)

  def close(self) -> None:
    self._writer.close()

  def _event(self, **fields: Any) -> Any:
    return self._proto.Event(wall_time=time.time(), **fields)

  def _write(self, event: Any) -> None:
    self._writer.write(event.SerializeToString())
    self._writer.flush()  # Whoever looks on sees each round at once.


_SECONDS_BETWEEN_LINES = 5.0
_PARTS = 10
_BAR = (
    '{percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} [{elapsed}<{remaining}'
    '{postfix}]'
)
_SHOWN = {
    'loss_before_training': 'loss',
    'population_loss': 'f(x)',
    'cumulative_regret': 'regret',
}


class Progress:
  """Shows how far a run is, the time left and the current losses.

  On a terminal and in a notebook a bar; else, as in a log, a line at the start,
  about every five seconds, and at every tenth of the run. Nothing at all where
  `command.silence` holds. A run is counted in rounds, or in the queries of a
  horizon.
  """

  def __init__(self, total: int, start: int, label: str, column: str = 'round'):
    """Starts; `column` counts up to `total`, `label` begins plain lines."""
    self._total = total
    self._done = start
    self._start = start
    self._label = label
    self._column = column
    self._losses: dict[str, float] = {}
    self._bar = _bar(total, start)
    # The first round compiles: times count from its end.
    self._first_end: Optional[tuple[int, float]] = None
    self._last_line = time.monotonic()

  def update(self, row: records.Row) -> None:
    """Takes in the row of the round just done."""
    before, self._done = self._done, int(records.number(row, self._column) or 0)
    if self._done > self._start and self._first_end is None:
      self._first_end = self._done, time.monotonic()
    for column in _SHOWN:
      value = records.number(row, column)
      if value is not None:
        self._losses[column] = value
    if self._bar is not None:
      losses = {_SHOWN[c]: f'{v:.4g}' for c, v in self._losses.items()}
      self._bar.set_postfix(losses, refresh=False)
      self._bar.update(self._done - self._bar.n)
    elif not command.is_silent() and self._line_is_due(before):
      self._last_line = time.monotonic()
      command.report(self._line())

  def report(self, text: str) -> None:
    """Prints a line beside the bar."""
    if self._bar is not None:
      self._bar.write(text, file=sys.stderr)
    else:
      command.report(text)

  def close(self) -> None:
    if self._bar is not None:
      self._bar.close()

  def _line_is_due(self, before: int) -> bool:
    if not self._done:  # The model before training.
      return True
    if time.monotonic() - self._last_line >= _SECONDS_BETWEEN_LINES:
      return True
    part, last_part = (
        n * _PARTS // self._total for n in (self._done, before)
    )
    return part > last_part

  def _line(self) -> str:
    name = 'round' if self._column == 'round' else 'query'
    parts = [f'{self._label}: {name} {self._done}/{self._total}']
    parts += [
        f'{name} {self._losses[column]:.4g}'
        for column, name in _SHOWN.items()
        if column in self._losses
    ]
    if self._first_end and self._done > self._first_end[0]:
      first, ended = self._first_end
      each = (time.monotonic() - ended) / (self._done - first)
      parts.append(f'{each * (self._total - self._done):.0f} s left')
    return ', '.join(parts)


def _bar(total: int, start: int) -> Optional[Any]:
  """Returns a bar of tqdm where one can be shown, else None."""
  is_notebook = _is_notebook()
  if command.is_silent() or not (is_notebook or sys.stderr.isatty()):
    return None
  with warnings.catch_warnings():
    # In a notebook without ipywidgets it is a bar of letters, with a warning.
    warnings.simplefilter('ignore')
    import tqdm.auto  # pylint: disable=g-import-not-at-top

  # The losses have to fit on 80 columns, so no label. The width is asked for
  # here because tqdm takes a terminal that does not know its width for none.
  return tqdm.auto.tqdm(
      total=total,
      initial=start,
      bar_format=None if is_notebook else _BAR,
      ncols=None if is_notebook else shutil.get_terminal_size().columns,
  )


def _is_notebook() -> bool:
  """Whether this process is the kernel of a notebook."""
  ipython = sys.modules.get('IPython')
  shell = ipython.get_ipython() if ipython else None
  return shell is not None and 'IPKernelApp' in shell.config


class Recorder(contextlib.AbstractContextManager):
  """Writes rows to metrics.csv, TensorBoard and the screen, and judges them.

  Attributes:
    divergence: What diverged, once something has, else None.
  """

  def __init__(
      self,
      config: experiment.ExperimentConfig,
      folder: folder_lib.RunFolder,
      rows: Sequence[records.Row],
      *,
      tensorboard: bool,
  ):
    """Starts, or goes on after `rows`.

    Args:
      config: The columns, the length, and what counts as divergence.
      folder: Where to write.
      rows: Rows of metrics.csv that stay.
      tensorboard: Whether to write events.
    """
    self._monitor = stopping.DivergenceMonitor(
        config.run.divergence_factor
    )
    self.divergence: Optional[str] = None
    for row in rows:
      self.divergence = self.divergence or self._monitor.observe(row)
    self._writer = records.MetricsWriter(
        folder.metrics_path, records.columns_of(config), rows
    )
    self._events = None
    if tensorboard:
      self._events = EventWriter(folder.events_path)
      if not rows:
        self._events.write_settings(config, folder.path.name)
    self._progress = _progress(config, rows, folder.path.name)

  def record(self, values: Mapping[str, Any]) -> None:
    """Records the row with these numbers by column."""
    row = self._writer.write({**values, 'resident_mib': _resident_mib()})
    self.divergence = self._monitor.observe(row)
    if self._events is not None:
      self._events.write(row)
    self._progress.update(row)

  def report(self, text: str) -> None:
    """Prints a line."""
    self._progress.report(text)

  def flush_to_disk(self) -> None:
    """Makes all rows survive a crash of the machine."""
    self._writer.flush_to_disk()

  def __exit__(self, *unused_error) -> None:
    self._progress.close()
    self._writer.close()
    if self._events is not None:
      self._events.close()


def _progress(
    config: experiment.ExperimentConfig,
    rows: Sequence[records.Row],
    label: str,
) -> Progress:
  """Counts rounds or, where only a horizon is given, queries."""
  total, column = config.run.rounds, 'round'
  if total is None:
    total, column = config.run.horizon, 'time_used'
  start = int(records.number(rows[-1], column) or 0) if rows else 0
  return Progress(total, start, label, column)


def _resident_mib() -> float:
  """Memory of this process now; where that is not known, at its peak."""
  try:
    with open('/proc/self/statm', encoding='ascii') as stream:
      num_bytes = int(stream.read().split()[1]) * os.sysconf('SC_PAGE_SIZE')
  except OSError:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    num_bytes = peak if sys.platform == 'darwin' else peak * 1024
  return round(num_bytes / 2**20, 1)
