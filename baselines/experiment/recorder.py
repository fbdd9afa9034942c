"""Everything that a run tells while it runs, in one place."""

import contextlib
import os
import resource
import sys
from typing import Any, Mapping, Optional, Sequence

from baselines.experiment import config as config_lib
from baselines.experiment import events
from baselines.experiment import progress
from baselines.experiment import records
from baselines.experiment import run_folder
from baselines.experiment import stopping


class Recorder(contextlib.AbstractContextManager):
  """Writes rows to metrics.csv, TensorBoard and the screen, and judges them.

  Attributes:
    divergence: What diverged, once something has, else None.
  """

  def __init__(
      self,
      config: config_lib.ExperimentConfig,
      folder: run_folder.RunFolder,
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
      self._events = events.EventWriter(folder.events_path)
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
    config: config_lib.ExperimentConfig,
    rows: Sequence[records.Row],
    label: str,
) -> progress.Progress:
  """Counts rounds, or, for an algorithm with a horizon, queries."""
  total, column = config.run.rounds, 'round'
  if total is None:
    total, column = config.algorithm.horizon, 'time_used'
  start = int(records.number(rows[-1], column) or 0) if rows else 0
  return progress.Progress(total, start, label, column)


def _resident_mib() -> float:
  """Memory of this process now; where that is not known, at its peak."""
  try:
    with open('/proc/self/statm', encoding='ascii') as stream:
      num_bytes = int(stream.read().split()[1]) * os.sysconf('SC_PAGE_SIZE')
  except OSError:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    num_bytes = peak if sys.platform == 'darwin' else peak * 1024
  return round(num_bytes / 2**20, 1)
