"""What a run folder allows is known before TensorFlow is loaded."""

import os

import numpy as np
import pytest

from baselines import command
from baselines.results import folder as folder_lib
from baselines.results import records
from baselines.settings import algorithms
from baselines.settings import experiment
from baselines.training import checkpoints
from baselines.training import plan

_CONFIG = experiment.ExperimentConfig(run=experiment.RunConfig(rounds=10))


def _start(path, status=None, round_num=0, settings=_CONFIG):
  folder = folder_lib.RunFolder(path)
  with folder.locked():
    folder.write_config(settings)
    if status:
      folder.write_status(status, round_num)
  writer = records.MetricsWriter(
      folder.metrics_path, records.columns_of(settings), []
  )
  for r in range(round_num + 1):
    writer.write({'round': r})
  writer.close()


def _stage(path, **changes):
  changed = experiment.replace_settings(_CONFIG, **changes)
  return plan.plan_run(changed, str(path)).stage


def test_new_run_and_nothing_written(tmp_path):
  assert _stage(tmp_path / 'run') == plan.NEW
  assert not os.listdir(tmp_path)


def test_default_folder_is_named_by_the_run():
  planned = plan.plan_run(_CONFIG)
  assert planned.folder.path.parts[0] == 'runs'
  assert planned.folder.path.name.startswith('digits-gamma0.05-eta0.05-')


@pytest.mark.parametrize('status, round_num, stage', [
    (None, 0, plan.PARTIAL),
    (folder_lib.RUNNING, 4, plan.PARTIAL),
    (folder_lib.INTERRUPTED, 4, plan.PARTIAL),
    (folder_lib.FAILED, 4, plan.PARTIAL),
    (folder_lib.FINISHED, 10, plan.DONE),
    (folder_lib.FINISHED, 6, plan.PARTIAL),
    (folder_lib.DIVERGED, 6, plan.DONE),
])
def test_stages(tmp_path, status, round_num, stage):
  _start(tmp_path, status, round_num)
  assert _stage(tmp_path) == stage


@pytest.mark.parametrize('status', [folder_lib.FINISHED, folder_lib.DIVERGED])
@pytest.mark.parametrize('num_kept', [0, 1, 10])
def test_run_that_lost_rows_is_not_done(tmp_path, status, num_kept):
  _start(tmp_path, status, 10)
  assert _stage(tmp_path) == plan.DONE
  path = tmp_path / 'metrics.csv'
  lines = path.read_text().splitlines(keepends=True)
  path.write_text(''.join(lines[: 1 + num_kept]))
  assert _stage(tmp_path) == plan.PARTIAL
  path.unlink()
  assert _stage(tmp_path) == plan.PARTIAL


def test_more_rounds_are_allowed_and_fewer_than_done_are_not(tmp_path):
  _start(tmp_path, folder_lib.FINISHED, 10)
  assert _stage(tmp_path, rounds=11, rounds_per_checkpoint=3) == plan.PARTIAL
  with pytest.raises(
      command.InputError, match='rounds must be at least 10, .*found 9'
  ):
    _stage(tmp_path, rounds=9)


def test_rounds_done_are_known_from_checkpoints_too(tmp_path):
  _start(tmp_path)
  folder = folder_lib.RunFolder(tmp_path)
  checkpoints.save(folder.checkpoints_path, 8, [np.zeros(1)])
  with pytest.raises(command.InputError, match='rounds must be at least 8'):
    _stage(tmp_path, rounds=7)


def test_changed_settings_are_refused_by_name_with_both_values(tmp_path):
  _start(tmp_path, folder_lib.RUNNING, 4)
  with pytest.raises(command.InputError) as caught:
    _stage(tmp_path, client_learning_rate=0.2, sampling_seed=5)
  assert 'client_learning_rate 0.05 there, 0.2 here' in str(caught.value)
  assert 'sampling_seed 1 there, 5 here' in str(caught.value)


def test_run_at_work_is_refused_and_a_done_one_is_not(tmp_path):
  _start(tmp_path, folder_lib.RUNNING, 4)
  with folder_lib.RunFolder(tmp_path).locked():
    with pytest.raises(command.InputError, match='in use'):
      _stage(tmp_path)
  _start(tmp_path, folder_lib.FINISHED, 10)
  with folder_lib.RunFolder(tmp_path).locked():
    assert _stage(tmp_path) == plan.DONE


def test_too_many_clients_are_refused_with_both_numbers():
  too_many = experiment.replace_settings(_CONFIG, clients_per_round=101)
  with pytest.raises(command.InputError, match='at most 100, .*found 101'):
    plan.plan_run(too_many)


def test_number_of_clients_may_depend_on_the_model():
  quadratics = experiment.ExperimentConfig(experiment.TaskConfig('quadratics'))
  with pytest.raises(command.InputError, match='at most 2, .*found 10'):
    plan.plan_run(quadratics)
  interval = experiment.replace_settings(quadratics, model='interval')
  assert plan.plan_run(interval).stage == plan.NEW


def test_independent_draws_may_be_more_than_there_are_clients():
  many = experiment.replace_settings(
      _CONFIG, clients_per_round=101, client_sampling='iid'
  )
  assert plan.plan_run(many).stage == plan.NEW


def _database_task(folder):
  return experiment.ExperimentConfig(
      task=experiment.TaskConfig(
          'emnist_digits', data_source='cache', data_dir=str(folder)
      )
  )


def test_missing_data_are_refused(tmp_path):
  with pytest.raises(command.InputError, match='no_such_folder'):
    plan.plan_run(_database_task(tmp_path / 'no_such_folder'))


def test_database_cut_to_half_is_refused(tmp_path, shared_data):
  whole = (shared_data / 'tff_cache' / 'emnist_all.sqlite').read_bytes()
  (tmp_path / 'emnist_all.sqlite').write_bytes(whole[: len(whole) // 2])
  with pytest.raises(command.InputError, match='emnist_all.sqlite'):
    plan.plan_run(_database_task(tmp_path))


_CEAL = experiment.ExperimentConfig(
    experiment.TaskConfig('scaled_regression'), algorithms.CealConfig(),
    run=experiment.RunConfig(horizon=90),
)


@pytest.mark.parametrize('status, round_num, stage', [
    (folder_lib.RUNNING, 4, plan.PARTIAL),
    (folder_lib.INTERRUPTED, 4, plan.PARTIAL),
    (folder_lib.FINISHED, 4, plan.DONE),
    (folder_lib.DIVERGED, 4, plan.DONE),
])
def test_stages_of_a_run_with_a_horizon(tmp_path, status, round_num, stage):
  _start(tmp_path, status, round_num, _CEAL)
  assert plan.plan_run(_CEAL, str(tmp_path)).stage == stage


def test_other_horizon_is_another_run(tmp_path):
  _start(tmp_path, folder_lib.FINISHED, 4, _CEAL)
  longer = experiment.replace_settings(_CEAL, horizon=91)
  with pytest.raises(command.InputError, match='horizon 90 there, 91 here'):
    plan.plan_run(longer, str(tmp_path))


def test_constants_without_a_formula_are_asked_for_before_anything_else():
  asked = experiment.ExperimentConfig(algorithm=algorithms.CealConfig())
  with pytest.raises(
      command.InputError, match='^step_size must be given for task digits: '
  ):
    plan.plan_run(asked)
  given = experiment.replace_settings(asked, step_size=0.1, noise_scale=1.0)
  assert plan.plan_run(given).stage == plan.NEW
  assert plan.plan_run(_CEAL).stage == plan.NEW


def test_run_that_cannot_be_read_is_bad_input(tmp_path):
  _start(tmp_path / 'run', folder_lib.FINISHED, 10)
  (tmp_path / 'run' / 'metrics.csv').unlink()
  (tmp_path / 'run' / 'metrics.csv').mkdir()
  with pytest.raises(command.InputError, match='run cannot be read: '):
    _stage(tmp_path / 'run')


@pytest.mark.parametrize('changes, stage', [
    ({}, plan.DONE),
    ({'rounds': 20}, plan.PARTIAL),
    ({'rounds': 20, 'rounds_per_evaluation': 5}, plan.DONE),
])
def test_divergence_by_a_last_evaluation_that_is_not_due(
    tmp_path, changes, stage
):
  # Evaluated after round 10 as that was the last one, or as it was due.
  every = changes.get('rounds_per_evaluation', 7)
  settings = experiment.replace_settings(_CONFIG, rounds_per_evaluation=every)
  _start(tmp_path, folder_lib.DIVERGED, 10, settings)
  assert _stage(tmp_path, rounds_per_evaluation=every, **{
      k: v for k, v in changes.items() if k == 'rounds'
  }) == stage
