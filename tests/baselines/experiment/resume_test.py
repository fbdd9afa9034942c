"""Where a run goes on, for every way in which it may have stopped."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from baselines.experiment import checkpoints
from baselines.experiment import config
from baselines.experiment import records
from baselines.experiment import resume
from baselines.experiment import run_folder

_State = collections.namedtuple('_State', ['weights', 'round_num'])
_RUN = config.RunConfig(rounds=10, rounds_per_evaluation=4)


def _state(value):
  return _State([tf.fill([2, 3], np.float32(value))], tf.constant(int(value)))


def _folder(path, rows, saved, evaluated=(0, 4, 8)):
  folder = run_folder.RunFolder(path)
  writer = records.MetricsWriter(folder.metrics_path, [])
  for r in range(rows):
    values = {'round': r, 'update_norm': 1.0 + r if r else None}
    if r in evaluated:
      values['population_loss'] = 10.0 - r
    writer.write(values)
  writer.close()
  for r in saved:
    checkpoints.save(
        folder.checkpoints_path, r, resume.flatten_state(_state(r))
    )
  return folder


def _find(folder, run=_RUN):
  reports = []
  return resume.find_start(run, folder, _state(0), reports.append), reports


@pytest.mark.parametrize('every, rounds, evaluated', [
    (3, 7, [0, 3, 6, 7]),
    (4, 8, [0, 4, 8]),
    (0, 5, [5]),
    (9, 4, [0, 4]),
])
def test_schedule_of_evaluations(every, rounds, evaluated):
  run = config.RunConfig(rounds=rounds, rounds_per_evaluation=every)
  due = [r for r in range(rounds + 1) if resume.is_evaluated(run, r)]
  assert due == evaluated


def test_new_run_starts_with_row_0(tmp_path):
  start, _ = _find(run_folder.RunFolder(tmp_path))
  assert (start.round_num, start.rows) == (0, [])
  assert start.incomplete == {'round': 0}


def test_goes_on_at_the_newest_checkpoint_and_drops_later_rows(tmp_path):
  start, reports = _find(_folder(tmp_path, rows=8, saved=[3, 5]))
  assert start.round_num == 5 and not reports
  assert [row['round'] for row in start.rows] == list('012345')
  np.testing.assert_array_equal(start.state.weights[0], np.full([2, 3], 5.0))
  assert start.state.round_num.numpy() == 5
  assert start.incomplete is None


def test_without_checkpoint_row_0_is_kept(tmp_path):
  start, _ = _find(_folder(tmp_path, rows=3, saved=[]))
  assert start.round_num == 0 and len(start.rows) == 1
  assert start.incomplete is None


def test_checkpoint_after_the_last_row_is_not_used(tmp_path):
  start, reports = _find(_folder(tmp_path, rows=5, saved=[3, 5]))
  assert start.round_num == 3 and len(reports) == 1


def test_evaluation_of_a_former_last_round_is_dropped(tmp_path):
  folder = _folder(tmp_path, rows=7, saved=[6], evaluated=(0, 4, 6))
  start, _ = _find(folder)
  assert start.round_num == 6
  assert [bool(row['population_loss']) for row in start.rows] == [
      True, False, False, False, True, False, False,
  ]


def test_round_that_becomes_the_last_one_gets_its_evaluation(tmp_path):
  folder = _folder(tmp_path, rows=7, saved=[6])
  start, _ = _find(folder, config.RunConfig(rounds=6, rounds_per_evaluation=4))
  assert start.round_num == 6 and len(start.rows) == 6
  assert start.incomplete['update_norm'] == '7.0'
  assert start.incomplete['population_loss'] == ''


def test_state_of_another_shape_or_type_is_refused():
  leaves = resume.flatten_state(_state(1))
  for wrong in (
      leaves[:1],
      [leaves[0].T, leaves[1]],
      [leaves[0].astype(np.float64), leaves[1]],
  ):
    with pytest.raises(ValueError, match='shapes and dtypes'):
      resume.unflatten_state(_state(0), wrong)
