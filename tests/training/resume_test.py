"""Where a run goes on, for every way in which it may have stopped."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from baselines import command
from baselines.regret import counter
from baselines.results import folder as folder_lib
from baselines.results import records
from baselines.settings import algorithms
from baselines.settings import experiment
from baselines.training import checkpoints
from baselines.training import loop

_State = collections.namedtuple('_State', ['weights', 'round_num'])
_CONFIG = experiment.ExperimentConfig(
    run=experiment.RunConfig(rounds=10, rounds_per_evaluation=4)
)
_COLUMNS = records.columns_of(_CONFIG)


def _state(value):
  return _State([tf.fill([2, 3], np.float32(value))], tf.constant(int(value)))


def _saved(value, time_used=0):
  return loop.Saved(_state(value), loop.Counts(time_used, 8 * value, value))


def _folder(path, rows, saved, evaluated=(0, 4, 8)):
  folder = folder_lib.RunFolder(path)
  writer = records.MetricsWriter(folder.metrics_path, _COLUMNS, [])
  for r in range(rows):
    values = {'round': r, 'update_norm': 1.0 + r if r else None}
    if r in evaluated:
      values['population_loss'] = 10.0 - r
    writer.write(values)
  writer.close()
  for r in saved:
    checkpoints.save(folder.checkpoints_path, r, loop.flatten_state(_saved(r)))
  return folder


def _find(folder, **changes):
  reports, asked = [], experiment.replace_settings(_CONFIG, **changes)
  start = loop.find_start(asked, folder, _saved(0), reports.append)
  return start, reports


@pytest.mark.parametrize('every, rounds, evaluated', [
    (3, 7, [0, 3, 6, 7]),
    (4, 8, [0, 4, 8]),
    (0, 5, [5]),
    (9, 4, [0, 4]),
])
def test_schedule_of_evaluations(every, rounds, evaluated):
  run = experiment.RunConfig(rounds=rounds, rounds_per_evaluation=every)
  due = [
      r for r in range(rounds + 1)
      if loop.is_evaluated(run, r, is_last=r == rounds)
  ]
  assert due == evaluated


def test_new_run_starts_with_row_0(tmp_path):
  start, _ = _find(folder_lib.RunFolder(tmp_path))
  assert (start.round_num, start.rows) == (0, [])
  assert start.incomplete == {'round': 0}


def test_goes_on_at_the_newest_checkpoint_and_drops_later_rows(tmp_path):
  start, reports = _find(_folder(tmp_path, rows=8, saved=[3, 5]))
  assert start.round_num == 5 and not reports
  assert [row['round'] for row in start.rows] == list('012345')
  state, counts, _ = start.saved
  np.testing.assert_array_equal(state.weights[0], np.full([2, 3], 5.0))
  assert state.round_num.numpy() == 5
  assert counts == (0, 40, 5)
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
  start, _ = _find(folder, rounds=6)
  assert start.round_num == 6 and len(start.rows) == 6
  assert start.incomplete['update_norm'] == '7.0'
  assert start.incomplete['population_loss'] == ''


def test_state_of_another_shape_or_type_is_refused():
  leaves = loop.flatten_state(_state(1))
  for wrong in (
      leaves[:1],
      [leaves[0].T, leaves[1]],
      [leaves[0].astype(np.float64), leaves[1]],
  ):
    with pytest.raises(ValueError, match='shapes and dtypes'):
      loop.unflatten_state(_state(0), wrong)


def test_checkpoint_of_another_version_is_refused_by_name(tmp_path):
  folder = _folder(tmp_path, rows=8, saved=[3])
  leaves = loop.flatten_state(_saved(5))
  checkpoints.save(folder.checkpoints_path, 5, [leaves[0].T, *leaves[1:]])
  with pytest.raises(
      command.InputError, match='checkpoints holds a state of another version'
  ):
    _find(folder)


def test_checkpoint_without_counts_takes_them_from_its_row(tmp_path):
  # As those of CEAL of earlier versions, whose rows had them.
  settings = experiment.ExperimentConfig(
      experiment.TaskConfig('digits'), algorithms.FedAvgConfig()
  )
  folder = folder_lib.RunFolder(tmp_path)
  writer = records.MetricsWriter(
      folder.metrics_path, records.columns_of(settings), []
  )
  for r in range(3):
    writer.write({
        'round': r, 'time_used': 7 * r, 'cumulative_uplink_bits': 0.3 * r,
        'cumulative_downlink_bits': 11 * r,
    })
  writer.close()
  checkpoints.save(
      folder.checkpoints_path, 2, loop.flatten_state(_state(2))
  )
  start = loop.find_start(settings, folder, _saved(0), print)
  assert start.saved.counts == loop.Counts(14, 6, 22)
  assert start.saved.state.round_num.numpy() == 2


def test_end_of_a_horizon_is_told_by_the_counts(tmp_path):
  # Nobody knows the number of rounds; round 6 was the last one.
  settings = experiment.ExperimentConfig(
      experiment.TaskConfig('digits'), algorithms.EpochsConfig(),
      run=experiment.RunConfig(rounds_per_evaluation=4, horizon=60),
  )
  folder = folder_lib.RunFolder(tmp_path)
  writer = records.MetricsWriter(
      folder.metrics_path, records.columns_of(settings), []
  )
  for r in range(7):
    values = {'round': r, 'time_used': 10 * r if r else None}
    writer.write({**values, 'population_loss': 1.0 if r in (0, 4) else None})
  writer.close()

  def find(time_used):
    checkpoints.save(
        folder.checkpoints_path, 6, loop.flatten_state(_saved(6, time_used))
    )
    return loop.find_start(settings, folder, _saved(0), print)

  assert find(59).incomplete is None
  start = find(60)
  assert start.round_num == 6 and len(start.rows) == 6
  assert start.incomplete['time_used'] == '60'
  # What was evaluated stays, whatever the number of rounds will be.
  assert start.rows[4]['population_loss'] == '1.0'


def test_state_and_regret_are_saved_together():
  counted = counter.AccountState(1.5, 20, 10, np.arange(3.0))
  both = loop.Saved(_state(2), loop.Counts(1, 2, 3), counted)
  leaves = loop.flatten_state(both)
  state, counts, found = loop.unflatten_state(both, leaves)
  assert tuple(map(int, counts)) == (1, 2, 3)
  np.testing.assert_array_equal(state.weights[0], np.full([2, 3], 2.0))
  found = counter.restored(found)
  assert found[:3] == counted[:3]
  np.testing.assert_array_equal(found.query_sum, counted.query_sum)


def test_run_that_counts_no_regret_saves_state_and_counts_alone():
  assert len(loop.flatten_state(_saved(2))) == 2 + 3
