"""TensorBoard events of a run: the same numbers as in metrics.csv."""

import os
import pathlib
import socket
import time
from typing import Any

from baselines.experiment import config_json
from baselines.experiment import records

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
    """Gives TensorBoard's HParams plugin the settings of the run.

    Args:
      config: The run's `config.ExperimentConfig`.
      name: The run's name.
    """
    from tensorboard.plugins.hparams import api  # pylint: disable=g-import-not-at-top

    settings = {
        setting: value
        for part in config_json.to_tree(config).values()
        for setting, value in part.items()
    }
    summary = api.hparams_pb(settings, trial_id=name)
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
