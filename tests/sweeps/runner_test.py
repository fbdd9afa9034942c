"""A sweep shares its work and survives what happens to a point."""

import os
import signal

import pytest

from baselines import command
from baselines.results import folder as folder_lib
from baselines.settings import experiment
from baselines.settings import record
from baselines.sweeps import runner
from baselines.training import loop
from baselines.training import stopping
from baselines.training import workbench

_BASE = experiment.ExperimentConfig(
    task=experiment.TaskConfig('digits', model='logistic'),
    algorithm=experiment.LocalUpdateConfig(theta='1:2'),
    run=experiment.RunConfig(
        rounds=4, clients_per_round=3, batch_size=4, rounds_per_evaluation=2
    ),
)


def _points(gammas='0,0.5,1', **changes):
  base = experiment.replace_settings(_BASE, **changes)
  return [
      experiment.replace_settings(base, client_learning_rate=float(gamma))
      for gamma in gammas.split(',')
  ]


def _run(points, folder):
  with stopping.Interruption() as interruption:
    return runner.run_points(
        points, folder, interruption, tensorboard=False
    )


def test_runs_on_the_same_data_follow_each_other(tmp_path, monkeypatch):
  deals = []
  build = workbench.Workbench._build_task
  monkeypatch.setattr(
      workbench.Workbench, '_build_task',
      lambda bench, task: deals.append(task.data_seed) or build(bench, task),
  )
  points = [
      experiment.replace_settings(point, data_seed=seed)
      for point in _points('0,1') for seed in (2, 1)
  ]
  outcomes = _run(points, tmp_path)
  assert [o.config for o in outcomes] == points
  assert [o.status for o in outcomes] == ['finished'] * 4
  assert deals == [2, 1]


def test_points_share_one_program_and_second_call_needs_no_tensorflow(
    tmp_path, monkeypatch
):
  tools = []
  original = workbench.Workbench.tools

  def watching(bench, settings):
    tools.append(original(bench, settings))
    return tools[-1]

  monkeypatch.setattr(workbench.Workbench, 'tools', watching)
  outcomes = _run(_points(), tmp_path)
  assert [o.status for o in outcomes] == ['finished'] * 3
  assert len({id(t.program) for t in tools}) == 1
  assert tools[0].program.num_compiled == 1
  assert len({o.final['first_population_loss'] for o in outcomes}) == 1
  names = {record.run_id(p) for p in _points()}
  assert set(os.listdir(tmp_path)) == names
  monkeypatch.setattr(command, 'announced', None)
  assert _run(_points(), tmp_path) == outcomes


def test_point_in_a_sweep_equals_the_point_alone(tmp_path):
  together = _run(_points(), tmp_path / 'together')[1]
  (alone,) = _run(_points('0.5'), tmp_path / 'alone')
  for field in ('first_population_loss', 'population_loss', 'last_loss'):
    assert alone.final[field] == together.final[field]


def test_diverged_and_failed_points_do_not_stop_the_sweep(
    tmp_path, monkeypatch, capsys
):
  original = loop.run_experiment

  def failing(plan, *args, **kwargs):
    if plan.config.algorithm.client_learning_rate == 0.5:
      raise MemoryError('out of luck')
    return original(plan, *args, **kwargs)

  with monkeypatch.context() as patch:
    patch.setattr(loop, 'run_experiment', failing)
    outcomes = _run(_points('1e38,0.5,0'), tmp_path)
  assert [o.status for o in outcomes] == ['diverged', 'failed', 'finished']
  assert outcomes[1].reason == 'out of luck'
  assert 'failed: out of luck' in capsys.readouterr().err
  # The next call runs the failed one again, and only that.
  outcomes = _run(_points('1e38,0.5,0'), tmp_path)
  assert [o.status for o in outcomes] == ['diverged', 'finished', 'finished']
  assert '[1/1]' in capsys.readouterr().err


def test_diverged_run_stands_beside_those_of_more_rounds(tmp_path):
  _run(_points('1e38,0'), tmp_path)
  outcomes = _run(_points('1e38,0', rounds=6), tmp_path)
  assert [o.status for o in outcomes] == ['diverged', 'finished']
  recorded = [
      folder_lib.RunFolder(path).read_config().run.rounds
      for path in tmp_path.iterdir()
  ]
  assert recorded == [6, 6]


def test_fewer_rounds_than_done_are_bad_input(tmp_path):
  _run(_points('1e38,0'), tmp_path)

  def content():
    return {p: p.read_bytes() for p in tmp_path.rglob('*') if p.is_file()}

  before = content()
  with pytest.raises(command.InputError, match='rounds must be at least 4'):
    _run(_points('1e38,1,0', rounds=3), tmp_path)
  assert content() == before


def test_point_whose_folder_is_in_use_fails_alone(tmp_path):
  held = folder_lib.RunFolder(tmp_path / record.run_id(_points('2')[0]))
  with held.locked():
    outcomes = _run(_points('1,2', rounds=3), tmp_path)
  assert [o.status for o in outcomes] == ['finished', 'failed']
  assert 'in use' in outcomes[1].reason


def test_signal_ends_the_sweep_and_the_next_call_goes_on(
    tmp_path, monkeypatch, capsys
):
  original = loop.run_experiment

  def interrupted(plan, *args, **kwargs):
    if plan.config.algorithm.client_learning_rate == 0.5:
      os.kill(os.getpid(), signal.SIGTERM)
    return original(plan, *args, **kwargs)

  with monkeypatch.context() as patch:
    patch.setattr(loop, 'run_experiment', interrupted)
    outcomes = _run(_points(), tmp_path)
  assert [o.status for o in outcomes] == [
      'finished', 'not started', 'not started'
  ]
  outcomes = _run(_points(), tmp_path)
  assert [o.status for o in outcomes] == ['finished'] * 3
  assert '[1/2]' in capsys.readouterr().err


def test_what_no_point_can_run_with_is_bad_input(tmp_path):
  with pytest.raises(command.InputError, match='require_gpu'):
    _run(_points(require_gpu=True), tmp_path)
  assert not os.listdir(tmp_path)


def test_point_that_fails_once_is_tried_again_after_all_others(
    tmp_path, monkeypatch, capsys
):
  original, tried = loop.run_experiment, []

  def failing_once(plan, *args, **kwargs):
    gamma = plan.config.algorithm.client_learning_rate
    tried.append(gamma)
    if gamma == 0.0 and tried.count(0.0) == 1:
      raise OSError('disk full')
    return original(plan, *args, **kwargs)

  monkeypatch.setattr(loop, 'run_experiment', failing_once)
  outcomes = _run(_points('0,0.5'), tmp_path)
  assert tried == [0.0, 0.5, 0.0]
  assert [o.status for o in outcomes] == ['finished', 'finished']
  said = capsys.readouterr().err
  assert 'failed: disk full' in said and '[again] digits-gamma0-' in said


def test_point_that_fails_twice_has_failed(tmp_path, monkeypatch):
  tried = []

  def failing(plan, *unused_args, **unused_kwargs):
    tried.append(plan)
    raise OSError('disk full')

  monkeypatch.setattr(loop, 'run_experiment', failing)
  (outcome,) = _run(_points('0'), tmp_path)
  assert (outcome.status, outcome.reason) == ('failed', 'disk full')
  assert len(tried) == 2


def test_new_and_old_sweep_folders_will_do(tmp_path):
  runner.check_folder(tmp_path / 'new' / 'sweep', None)
  run = tmp_path / 'sweep' / 'run'
  run.mkdir(parents=True)
  (run / 'config.json').write_text('{}')
  (tmp_path / 'sweep' / 'results.csv').write_text('')
  runner.check_folder(tmp_path / 'sweep', str(tmp_path / 'figure.png'))
  assert not (tmp_path / 'new').exists()


def test_sweep_that_was_stopped_before_its_first_run_goes_on(tmp_path):
  for name in ('results.csv', 'results.md'):
    (tmp_path / name).write_text('')
  runner.check_folder(tmp_path, None)


def _refused(path, figure, words):
  with pytest.raises(command.InputError, match=words):
    runner.check_folder(path, figure)


def test_results_of_others_are_not_overwritten(tmp_path):
  (tmp_path / 'results.csv').write_text('mine')
  _refused(tmp_path, None, 'no run')
  (tmp_path / 'config.json').write_text('{}')
  _refused(tmp_path, None, 'found a run')
  assert (tmp_path / 'results.csv').read_text() == 'mine'


def test_places_that_cannot_be_written_are_refused(tmp_path):
  file = tmp_path / 'file'
  file.write_text('')
  (tmp_path / 'loop').symlink_to(tmp_path / 'loop')
  _refused(file, None, 'output_dir must be a folder')
  _refused(file / 'below', None, 'output_dir must be a folder')
  _refused(tmp_path / ('n' * 300), None, 'output_dir must be a folder')
  _refused(tmp_path / 'new', str(file / 'a.png'), 'the folder of figure')
  _refused(tmp_path / 'new', str(tmp_path), 'figure must be a file')
  if os.getuid():  # root may write anywhere
    tmp_path.chmod(0o555)
    _refused(tmp_path / 'new', None, 'output_dir must be a folder')
