"""TensorBoard events of a run: the same numbers as in metrics.csv."""

import pathlib
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
  """Writes one summary per round. Imports TensorFlow when it is made."""

  def __init__(self, folder: pathlib.Path):
    import tensorflow as tf  # pylint: disable=g-import-not-at-top

    self._tf = tf
    self._writer = tf.summary.create_file_writer(str(folder))

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
    with self._writer.as_default(step=0):
      api.hparams(settings, trial_id=name)

  def write(self, row: records.Row) -> None:
    """Writes the numbers of a row, under the row's round as the step."""
    summary = self._tf.compat.v1.Summary()
    for column in row:
      value = records.number(row, column)
      if value is not None and column != 'round':
        group = _GROUPS.get(column, 'training')
        summary.value.add(tag=f'{group}/{column}', simple_value=value)
    # One operation for all numbers: a round may take a millisecond.
    with self._writer.as_default(step=int(row['round'])):
      self._tf.summary.experimental.write_raw_pb(summary.SerializeToString())

  def flush(self) -> None:
    self._writer.flush()

  def close(self) -> None:
    self._writer.close()
