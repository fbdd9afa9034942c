"""Each row goes everywhere, and is judged."""

import pytest

from baselines.results import folder as folder_lib
from baselines.results import records
from baselines.settings import algorithms
from baselines.settings import experiment
from baselines.training import recorder

_CONFIG = experiment.ExperimentConfig(
    run=experiment.RunConfig(rounds=10, divergence_factor=10.0)
)


def _read(folder):
  return records.read_rows(
      folder.metrics_path, records.columns_of(_CONFIG)
  )


def _record(folder, rows, *losses, tensorboard=False):
  with recorder.Recorder(
      _CONFIG, folder, rows, tensorboard=tensorboard
  ) as recorded:
    for r, loss in enumerate(losses, len(rows)):
      recorded.record({'round': r, 'loss_before_training': loss})
    recorded.flush_to_disk()
  return recorded.divergence


def test_rows_are_written_with_the_memory_in_use(tmp_path):
  folder = folder_lib.RunFolder(tmp_path)
  assert _record(folder, [], None, 2.0, 1.0) is None
  rows = _read(folder)
  assert [row['loss_before_training'] for row in rows] == ['', '2.0', '1.0']
  assert all(10.0 < float(row['resident_mib']) < 1e6 for row in rows)
  assert not folder.events_path.exists()


@pytest.mark.parametrize('kept', [1, 2, 3])
def test_judgement_does_not_depend_on_where_it_stopped(tmp_path, kept):
  folder = folder_lib.RunFolder(tmp_path)
  _record(folder, [], None, 2.0, 15.0, 15.0)
  rows = _read(folder)[:kept]
  losses = [None, 2.0, 15.0, 20.5][kept:]
  found = _record(folder, rows, *losses)
  assert found.startswith('loss_before_training is 20.5')


def test_diverged_row_that_was_kept_is_seen(tmp_path):
  folder = folder_lib.RunFolder(tmp_path)
  assert _record(folder, [], None, 2.0, float('nan')) is not None
  rows = _read(folder)
  assert _record(folder, rows) == 'loss_before_training is nan'


def test_tensorboard_events_on_demand(tmp_path):
  folder = folder_lib.RunFolder(tmp_path)
  _record(folder, [], None, 2.0, tensorboard=True)
  assert len(list(folder.events_path.iterdir())) == 1


def test_run_with_a_horizon_goes_on_counting_queries(tmp_path, capsys):
  settings = experiment.ExperimentConfig(
      experiment.TaskConfig('scaled_regression'),
      algorithms.FedAvgConfig(10),
      run=experiment.RunConfig(horizon=100),
  )
  folder = folder_lib.RunFolder(tmp_path / 'fed')
  folder.path.mkdir()
  rows = []
  for first, last in ((0, 4), (5, 10)):
    with recorder.Recorder(
        settings, folder, rows, tensorboard=False
    ) as recorded:
      for r in range(first, last + 1):
        recorded.record({'round': r, 'time_used': 10 * r if r else None})
    rows = records.read_rows(folder.metrics_path, records.columns_of(settings))
  times = [row['time_used'] for row in rows]
  assert times == ['', *map(str, range(10, 101, 10))]
  lines = [
      line.partition(',')[0] for line in capsys.readouterr().err.splitlines()
  ]
  assert lines == [f'fed: query {10 * r}/100' for r in range(11)]
