"""TensorBoard gets the numbers of metrics.csv."""

from tensorboard.backend.event_processing import event_accumulator
from tensorboard.plugins.hparams import metadata
from tensorboard.plugins.hparams import plugin_data_pb2
import tensorflow as tf

from baselines.results import records
from baselines.settings import algorithms
from baselines.settings import experiment
from baselines.training import recorder


def _read(folder):
  values = {}
  for path in sorted(folder.iterdir()):
    for event in tf.compat.v1.train.summary_iterator(str(path)):
      for value in event.summary.value:
        values[event.step, value.tag] = value.simple_value
  return values


def test_numbers_and_steps(tmp_path):
  columns = records.columns_of(experiment.ExperimentConfig(
      experiment.TaskConfig('scaled_regression'), algorithms.CealConfig()
  ))
  writer = recorder.EventWriter(tmp_path)
  for r in range(3):
    writer.write(records.format_row({
        'round': r,
        'loss_before_training': 2.0 + r,
        'population_loss': 0.5 if r == 2 else None,
        'last_regret': 0.125 if r == 1 else None,
        'epoch': 5,
        'round_seconds': 0.25,
    }, columns))
  # Before the file is closed: a killed run has shown all its rounds.
  assert _read(tmp_path) == {
      (0, 'training/loss_before_training'): 2.0,
      (1, 'training/loss_before_training'): 3.0,
      (2, 'training/loss_before_training'): 4.0,
      (2, 'evaluation/population_loss'): 0.5,
      (1, 'regret/last_regret'): 0.125,
      **{(r, 'training/epoch'): 5.0 for r in range(3)},
      (0, 'machine/round_seconds'): 0.25,
      (1, 'machine/round_seconds'): 0.25,
      (2, 'machine/round_seconds'): 0.25,
  }
  writer.close()


def test_tensorboard_reads_a_run_that_went_on(tmp_path):
  settings = experiment.ExperimentConfig(
      experiment.TaskConfig('scaled_regression'), algorithms.CealConfig()
  )
  columns = records.columns_of(settings)
  for part in ((0, 1), (2, 3)):
    writer = recorder.EventWriter(tmp_path / 'events')
    if not part[0]:
      writer.write_settings(settings, 'a-run')
    for r in part:
      writer.write(records.format_row({'round': r, 'epoch': 2 * r}, columns))
    writer.close()
  accumulator = event_accumulator.EventAccumulator(str(tmp_path / 'events'))
  accumulator.Reload()
  scalars = accumulator.Scalars('training/epoch')
  found = [(event.step, event.value) for event in scalars]
  assert found == [(r, 2.0 * r) for r in range(4)]
  content = accumulator.PluginTagToContent(metadata.PLUGIN_NAME)
  started = metadata.parse_session_start_info_plugin_data(
      content[metadata.SESSION_START_INFO_TAG]
  )
  assert isinstance(started, plugin_data_pb2.SessionStartInfo)
  assert started.hparams['task'].string_value == 'scaled_regression'
  assert started.hparams['horizon'].number_value == settings.run.horizon
