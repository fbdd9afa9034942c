"""What is left of a sweep is known from its folders."""

import pytest

from baselines import command
from baselines.results import folder as folder_lib
from baselines.results import records
from baselines.settings import algorithms
from baselines.settings import experiment
from baselines.settings import record
from baselines.sweeps import status

_BASE = experiment.ExperimentConfig(run=experiment.RunConfig(rounds=40))
_CEAL = experiment.ExperimentConfig(
    experiment.TaskConfig('scaled_regression'), algorithms.CealConfig(),
    run=experiment.RunConfig(horizon=500),
)


def _write(folder, settings, num_rounds, word, column=None):
  run = folder_lib.RunFolder(folder / record.run_id(settings))
  with run.locked():
    run.write_config(settings)
    if word:
      run.write_status(word, num_rounds)
  writer = records.MetricsWriter(
      run.metrics_path, records.columns_of(settings), []
  )
  for r in range(num_rounds + 1):
    values = {'round': r, 'round_seconds': 0.5 if r else None}
    if column and r:
      values[column] = 30 * r
    writer.write({**values, 'evaluation_seconds': 2.0 if r == 0 else None})
  writer.close()


def _point(folder, settings):
  return status.point_status(settings, folder)


def test_point_that_has_not_started(tmp_path):
  point = _point(tmp_path, _BASE)
  assert point == status.PointStatus(
      record.run_id(_BASE), 'new', 0, 40, 0.0
  )
  assert point.left == 40
  assert not list(tmp_path.iterdir())


@pytest.mark.parametrize('word, num_rounds, left', [
    ('running', 10, 30), ('interrupted', 10, 30), ('failed', 10, 30),
    ('finished', 40, 0), ('diverged', 10, 0),
])
def test_rounds_done_and_left(tmp_path, word, num_rounds, left):
  _write(tmp_path, _BASE, num_rounds, word)
  point = _point(tmp_path, _BASE)
  assert (point.status, point.done, point.total) == (word, num_rounds, 40)
  assert point.left == left
  assert point.seconds == 2.0 + 0.5 * num_rounds


def test_finished_run_of_which_more_is_wanted_is_partial(tmp_path):
  _write(tmp_path, _BASE, 40, 'finished')
  longer = experiment.replace_settings(_BASE, rounds=100)
  point = _point(tmp_path, longer)
  assert (point.status, point.done, point.left) == ('partial', 40, 60)
  shorter = experiment.replace_settings(_BASE, rounds=30)
  with pytest.raises(command.InputError, match='rounds must be at least 40'):
    _point(tmp_path, shorter)


def test_run_that_was_killed_at_once_is_partial(tmp_path):
  _write(tmp_path, _BASE, 0, '')
  assert _point(tmp_path, _BASE).status == 'partial'


def test_horizon_is_counted_in_queries(tmp_path):
  assert _point(tmp_path, _CEAL).left == 500
  _write(tmp_path, _CEAL, 4, 'running', 'time_used')
  point = _point(tmp_path, _CEAL)
  assert (point.done, point.total, point.left) == (120, 500, 380)


def test_rounds_are_counted_where_a_horizon_is_given_too(tmp_path):
  both = experiment.replace_settings(_CEAL, rounds=6)
  assert both.run.horizon == 500
  _write(tmp_path, both, 4, 'running', 'time_used')
  point = _point(tmp_path, both)
  assert (point.done, point.total, point.left) == (4, 6, 2)


def test_folder_of_something_else_is_unreadable(tmp_path):
  folder = tmp_path / record.run_id(_BASE)
  folder.mkdir()
  (folder / 'thesis.tex').touch()
  point = _point(tmp_path, _BASE)
  assert (point.status, point.left) == ('unreadable', 40)


def test_time_to_go_is_at_the_mean_pace(tmp_path):
  other = experiment.replace_settings(_BASE, sampling_seed=2)
  assert status.seconds_left([_point(tmp_path, _BASE)]) is None
  _write(tmp_path, _BASE, 10, 'running')
  points = [_point(tmp_path, c) for c in (_BASE, other)]
  # 7 s for 10 rounds; 30 + 40 are left.
  assert status.seconds_left(points) == pytest.approx(49.0)
  lines = status.status_text(points).splitlines()
  assert len(lines) == 3
  assert lines[0].split() == ['running', '10/40', record.run_id(_BASE)]
  assert lines[1].split()[0] == 'new'
  assert lines[2] == '2 of 2 left, about 49 s to go'


def test_nothing_left(tmp_path):
  _write(tmp_path, _BASE, 40, 'finished')
  text = status.status_text([_point(tmp_path, _BASE)])
  assert text.splitlines()[-1] == '0 of 1 left, about 0 s to go'
