"""The loop, and above all: stopped in any way, it gives the same numbers."""

import dataclasses
import os
import random
import re
import signal
import time
import types

import numpy as np
import pytest
import tensorflow as tf

from baselines import command
from baselines import files
from baselines.algorithms import driver as driver_lib
from baselines.results import folder
from baselines.results import records
from baselines.settings import algorithms
from baselines.settings import experiment
from baselines.training import checkpoints
from baselines.training import data
from baselines.training import loop
from baselines.training import plan
from baselines.training import recorder as recorder_lib
from baselines.training import stopping
from baselines.training import workbench as workbench_lib
from tests.algorithms import driver_cases as cases
from tff_localupdate import execution

_ROUNDS = 10
_CONFIG = experiment.ExperimentConfig(
    task=experiment.TaskConfig('digits', model='logistic'),
    algorithm=experiment.LocalUpdateConfig(theta='1:2'),
    run=experiment.RunConfig(
        rounds=_ROUNDS,
        clients_per_round=3,
        batch_size=4,
        rounds_per_evaluation=4,
        rounds_per_checkpoint=3,
    ),
)


def _rows(path, settings=_CONFIG):
  return records.read_rows(path / 'metrics.csv', records.columns_of(settings))


class _Killed(BaseException):
  """Ends the loop as SIGKILL would: nothing is caught, nothing tidied."""


@pytest.fixture(scope='module', name='workbench')
def _workbench():
  return workbench_lib.Workbench(report=lambda text: None)


def _run(workbench, path, **changes):
  settings = experiment.replace_settings(_CONFIG, **changes)
  planned = plan.plan_run(settings, str(path))
  with stopping.Interruption() as interruption:
    return loop.run_experiment(
        planned, workbench, interruption, tensorboard=False
    )


def _numbers(path, settings=_CONFIG):
  """All that must not depend on how the run went: rows and last weights."""
  rows = _rows(path, settings)
  kept = [
      {k: v for k, v in row.items() if k not in records.MACHINE_COLUMNS}
      for row in rows
  ]
  leaves = checkpoints.load(path / 'checkpoints', len(rows) - 1)
  return kept, [leaf.tobytes() for leaf in leaves]


@pytest.fixture(scope='module', name='straight')
def _straight(workbench, tmp_path_factory):
  path = tmp_path_factory.mktemp('straight')
  outcome = _run(workbench, path)
  assert (outcome.status, outcome.round) == (folder.FINISHED, _ROUNDS)
  return _numbers(path)


def _patch_next(monkeypatch, before):
  """Calls `before(number of the call)` ahead of each round."""
  original, calls = execution.Program.next, []

  def next_fn(program, state, cohort):
    calls.append(None)
    before(len(calls))
    return original(program, state, cohort)

  monkeypatch.setattr(execution.Program, 'next', next_fn)


def test_rows_hold_metrics_rates_and_evaluations(straight):
  rows, _ = straight
  assert [row['round'] for row in rows] == [str(r) for r in range(11)]
  assert all(rows[0][c] == '' for c in records.TRAINING_COLUMNS)
  for row in rows[1:]:
    assert row['client_learning_rate'] == row['server_learning_rate'] == '0.05'
    assert row['clients_used'] == '3' and row['examples_used'] == '24'
    assert float(row['loss_before_training']) > 0
  evaluated = [r for r, row in enumerate(rows) if row['population_loss']]
  assert evaluated == [0, 4, 8, 10]
  assert float(rows[10]['population_loss']) < float(rows[0]['population_loss'])


def test_evaluation_is_of_the_model_after_the_round(
    workbench, straight, tmp_path
):
  _run(workbench, tmp_path)
  tools = workbench.tools(_CONFIG)
  state, *_ = loop.unflatten_state(
      loop.Saved(workbench.initial_state(_CONFIG), loop.Counts()),
      checkpoints.load(tmp_path / 'checkpoints', _ROUNDS),
  )
  evaluation = tools.evaluator.evaluate(tools.process.get_model_weights(state))
  assert straight[0][10]['population_loss'] == repr(evaluation.population_loss)


def _assert_drawn(tools, settings, rounds, draw_steps, **arguments):
  """Checks the cohorts of rounds that were watched against plain draws."""
  for round_num, done in enumerate(rounds, 1):
    drawn = data.draw_cohort(
        tools.task.population, seed=settings.run.sampling_seed,
        round_num=round_num, clients_per_round=settings.run.clients_per_round,
        batch_size=settings.run.batch_size, **draw_steps(done.before),
        **arguments,
    )
    expected = tools.driver.cohort(driver_lib.CohortData(
        drawn.batches, drawn.num_examples, drawn.examples, drawn.batch_sizes
    ))
    tf.nest.assert_same_structure(done.cohort, expected)
    tf.nest.map_structure(np.testing.assert_array_equal, done.cohort, expected)


@pytest.mark.parametrize('algorithm, changes, num_steps, arguments', [
    (_CONFIG.algorithm, {}, 2, {}),
    (
        _CONFIG.algorithm, {'client_sampling': 'iid'}, 2,
        {'client_sampling': 'iid'},
    ),
    (
        _CONFIG.algorithm, {'loss_before_training': 'full'}, 2, {'full': True}
    ),
    (algorithms.EpochsConfig(num_epochs=2), {}, None, {'num_epochs': 2}),
])
def test_rounds_work_on_the_draws_of_their_number_and_the_sampling_seed(
    workbench, tmp_path, algorithm, changes, num_steps, arguments
):
  changes = {'sampling_seed': 7, 'model_seed': 3, 'rounds': 3, **changes}
  settings = experiment.replace_settings(
      dataclasses.replace(_CONFIG, algorithm=algorithm), **changes
  )
  planned = plan.plan_run(settings, str(tmp_path))
  with cases.watched() as rounds:
    loop.run_experiment(
        planned, workbench, stopping.Interruption(), tensorboard=False
    )
  tools = workbench.tools(settings)
  if num_steps is None:  # Two passes of the client with the most examples.
    num_steps = 2 * -(-int(tools.task.train.sizes.max()) // 4)
  assert len(rounds) == 3
  _assert_drawn(
      tools, settings, rounds, lambda _: {'num_steps': num_steps}, **arguments
  )


@pytest.fixture(scope='module', name='horizon_folder')
def _horizon_folder(tmp_path_factory):
  return tmp_path_factory.mktemp('horizon')


@pytest.fixture(scope='module', name='horizon_runs')
def _horizon_runs(horizon_folder):
  """Watched: local steps, and queries of one point, as many as rounds ask."""
  return {
      name: cases.run(cases.settings(name), horizon_folder / name)
      for name in ('fed_avg', 'ceal')
  }


def test_rounds_of_a_size_of_their_own_are_drawn_as_their_state_asks(
    horizon_runs
):
  done = horizon_runs['ceal']
  tools = cases.workbench().tools(done.config)

  def draw_steps(state):
    return {
        'num_steps': tools.driver.samples_needed(state),
        'num_rows': tools.driver.rows_needed(state),
    }

  asked = [draw_steps(r.before) for r in done.rounds]
  assert len({steps['num_steps'] for steps in asked}) > 1
  assert any(steps['num_steps'] < steps['num_rows'] for steps in asked)
  _assert_drawn(tools, done.config, done.rounds, draw_steps)


@pytest.mark.parametrize('name', ['fed_avg', 'ceal'])
def test_rows_count_the_queries_and_the_bits_of_their_rounds(
    horizon_runs, name
):
  done = horizon_runs[name]
  problem = cases.SquaredError(done.config)
  points, norms = done.points(), done.column('true_gradient_norm')
  regrets = [problem.value(point) - problem.best for point in points]
  expected = [0.0, *(e[0] for e in cases.regret_by_loops(problem, done))]
  every = slice(None)
  np.testing.assert_allclose(
      done.column('cumulative_regret', every), expected, rtol=1e-9
  )
  np.testing.assert_allclose(
      done.column('last_regret', every), regrets, rtol=1e-9
  )
  assert expected[-1] > 0 and regrets[-1] < regrets[0]
  np.testing.assert_allclose(
      done.column('cumulative_uplink_bits'),
      np.cumsum(done.column('uplink_bits')), rtol=1e-15,
  )
  if name == 'ceal':
    rows = np.arange(len(problem.y))
    np.testing.assert_allclose(
        norms,
        [np.linalg.norm(problem.gradient(p, rows)) for p in points[:-1]],
        rtol=1e-9,
    )
  # Only after the last round, which for CEAL nothing but the state can tell.
  evaluated = [bool(row['population_loss']) for row in done.rows]
  assert evaluated == [False] * (len(done.rows) - 1) + [True]


@pytest.mark.parametrize('name', ['fed_avg', 'ceal'])
@pytest.mark.parametrize('call', [2, 4])
def test_killed_it_counts_on_from_what_was_saved(
    horizon_runs, horizon_folder, tmp_path, name, call
):
  def kill(number):
    if number == call:
      raise _Killed

  settings = horizon_runs[name].config
  with pytest.raises(_Killed):
    cases.run(settings, tmp_path, kill)
  resumed = cases.run(settings, tmp_path)
  # Rounds 2, 4, ... are saved.
  saved = (call - 1) // 2 * 2
  # The round that the horizon cuts is counted but not run: FedAvg has one here.
  cut = name == 'fed_avg'
  assert len(resumed.rounds) == len(resumed.rows) - 1 - saved - cut
  assert _numbers(tmp_path, settings) == _numbers(
      horizon_folder / name, settings
  )


def test_run_does_not_go_on_with_other_data(workbench, tmp_path, monkeypatch):
  task = workbench.task(_CONFIG.task)
  for digest, is_refused in (('a', False), ('b', True), ('a', False)):
    found = dataclasses.replace(task, digests={'words': digest})
    monkeypatch.setattr(workbench, 'task', lambda _, found=found: found)
    rounds = len(_rows(tmp_path)) or 1
    if is_refused:
      with pytest.raises(command.InputError, match='other data: words must'):
        _run(workbench, tmp_path, rounds=rounds)
    else:
      outcome = _run(workbench, tmp_path, rounds=rounds)
      assert (outcome.status, outcome.round) == ('finished', rounds)


def test_6_rounds_then_10_equal_10_straight(
    workbench, straight, tmp_path, monkeypatch
):
  draw, chance = data.draw_cohort, random.Random(0)

  def delayed(*args, **kwargs):
    time.sleep(chance.choice([0.0, 0.01, 0.03]))
    return draw(*args, **kwargs)

  monkeypatch.setattr(data, 'draw_cohort', delayed)
  outcome = _run(workbench, tmp_path, rounds=6)
  assert (outcome.status, outcome.round) == (folder.FINISHED, 6)
  assert _run(workbench, tmp_path).status == folder.FINISHED
  assert _numbers(tmp_path) == straight


def test_rows_are_on_the_disk_before_the_state(
    workbench, tmp_path, monkeypatch
):
  flush, save = recorder_lib.Recorder.flush_to_disk, checkpoints.save
  done = []

  def flush_(recorder):
    done.append('rows')
    flush(recorder)

  def save_(path, round_num, leaves):
    done.append(round_num)
    save(path, round_num, leaves)

  monkeypatch.setattr(recorder_lib.Recorder, 'flush_to_disk', flush_)
  monkeypatch.setattr(checkpoints, 'save', save_)
  _run(workbench, tmp_path)
  assert done == ['rows', 3, 'rows', 6, 'rows', 9, 'rows', 10]


def test_seconds_are_those_of_the_round_and_of_its_evaluation(
    workbench, tmp_path, monkeypatch
):
  clock, tools = [0.0], workbench.tools(_CONFIG)

  def pass_(seconds):
    clock[0] += seconds

  monkeypatch.setattr(
      loop, 'time', types.SimpleNamespace(monotonic=lambda: clock[0])
  )
  evaluate, save = tools.evaluator.evaluate, checkpoints.save
  monkeypatch.setattr(
      tools.evaluator, 'evaluate', lambda w: pass_(2.0) or evaluate(w)
  )
  monkeypatch.setattr(
    checkpoints, 'save', lambda *args: pass_(100.0) or save(*args)
  )
  _patch_next(monkeypatch, lambda call: pass_(5.0 + call))
  _run(workbench, tmp_path)
  rows = _rows(tmp_path)
  times = [records.number(row, 'round_seconds') for row in rows]
  assert times == [None, *(5.0 + r for r in range(1, 11))]
  times = [records.number(row, 'evaluation_seconds') for row in rows]
  assert times == [None if r not in (0, 4, 8, 10) else 2.0 for r in range(11)]


def test_what_is_told_on_the_way(workbench, tmp_path, monkeypatch, capsys):
  driver = workbench.tools(_CONFIG).driver
  monkeypatch.setattr(
      driver, 'remark', lambda metrics: f'odd {float(metrics.update_norm)}'
  )
  for rounds, first in ((3, 0), (5, 3)):
    _run(workbench, tmp_path, rounds=rounds)
    said = capsys.readouterr().err
    assert said.count('client work ran on CPU') == 1
    assert ('going on after round' in said) == bool(first)
    assert not first or f'going on after round {first}' in said
    norms = [float(row['update_norm']) for row in _rows(tmp_path)[1 + first :]]
    found = [float(norm) for norm in re.findall(r'odd (\S+)', said)]
    assert len(found) == rounds - first
    np.testing.assert_allclose(found, norms, rtol=1e-6)


@pytest.mark.parametrize('rounds, said', [(3, True), (4, False)])
def test_decay_that_cannot_come_is_told(
    workbench, tmp_path, capsys, rounds, said
):
  _run(
      workbench, tmp_path, rounds=rounds, decay_rule='canonical', window=2,
      patience=1, cooldown=1,
  )
  text = 'the rates cannot decay: that takes more than 3 rounds'
  assert (text in capsys.readouterr().err) == said


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_signal_ends_the_round_and_saves(
    workbench, straight, tmp_path, monkeypatch, number
):
  with monkeypatch.context() as patch:
    _patch_next(
        patch, lambda call: call == 4 and os.kill(os.getpid(), number)
    )
    outcome = _run(workbench, tmp_path)
  assert (outcome.status, outcome.round) == (folder.INTERRUPTED, 4)
  assert checkpoints.saved_rounds(tmp_path / 'checkpoints') == [3, 4]
  _run(workbench, tmp_path)
  assert _numbers(tmp_path) == straight


def test_interrupted_run_can_be_ended_where_it_is(
    workbench, straight, tmp_path, monkeypatch
):
  with monkeypatch.context() as patch:
    _patch_next(
        patch, lambda call: call == 5 and os.kill(os.getpid(), signal.SIGTERM)
    )
    _run(workbench, tmp_path)
  outcome = _run(workbench, tmp_path, rounds=5)
  assert outcome.status == folder.FINISHED
  assert outcome.final['population_loss'] is not None
  rows = _rows(tmp_path)
  assert rows[5]['population_loss'] and len(rows) == 6
  _run(workbench, tmp_path)
  assert _numbers(tmp_path) == straight


def test_interruption_before_the_start_writes_nothing(workbench, tmp_path):
  planned = plan.plan_run(_CONFIG, str(tmp_path / 'run'))
  interruption = stopping.Interruption()
  interruption.requested = True
  outcome = loop.run_experiment(planned, workbench, interruption)
  assert outcome.status == 'not started'
  assert not os.listdir(tmp_path)


def test_interruption_in_the_first_evaluation_trains_no_round(
    workbench, tmp_path, monkeypatch
):
  evaluator = workbench.tools(_CONFIG).evaluator
  evaluate, interruption = evaluator.evaluate, stopping.Interruption()

  def interrupted(weights):
    interruption.requested = True
    return evaluate(weights)

  monkeypatch.setattr(evaluator, 'evaluate', interrupted)
  outcome = loop.run_experiment(
      plan.plan_run(_CONFIG, str(tmp_path)), workbench, interruption,
      tensorboard=False,
  )
  assert (outcome.status, outcome.round) == (folder.INTERRUPTED, 0)
  assert [bool(row['population_loss']) for row in _rows(tmp_path)] == [True]
  assert not checkpoints.saved_rounds(tmp_path / 'checkpoints')


def test_divergence_in_the_first_evaluation_trains_no_round(
    workbench, tmp_path, monkeypatch
):
  evaluator = workbench.tools(_CONFIG).evaluator
  evaluate = evaluator.evaluate
  monkeypatch.setattr(
      evaluator, 'evaluate',
      lambda w: evaluate(w)._replace(population_loss=float('nan')),
  )
  outcome = _run(workbench, tmp_path)
  assert (outcome.status, outcome.round) == (folder.DIVERGED, 0)
  assert 'population_loss' in outcome.reason and len(_rows(tmp_path)) == 1


def test_run_that_another_process_has_done_meanwhile_is_left_as_it_is(
    workbench, straight, tmp_path, monkeypatch
):
  planned = plan.plan_run(_CONFIG, str(tmp_path))
  _run(workbench, tmp_path)
  written = []
  monkeypatch.setattr(files, 'write_whole', lambda *args: written.append(args))
  outcome = loop.run_experiment(
      planned, workbench, stopping.Interruption(), tensorboard=False
  )
  assert (outcome.status, outcome.round) == (folder.FINISHED, _ROUNDS)
  assert not written and _numbers(tmp_path) == straight


@pytest.mark.parametrize('tensorboard', [False, True])
def test_events_are_written_where_they_are_asked_for(
    workbench, tmp_path, tensorboard
):
  planned = plan.plan_run(
      experiment.replace_settings(_CONFIG, rounds=1), str(tmp_path)
  )
  loop.run_experiment(
      planned, workbench, stopping.Interruption(), tensorboard=tensorboard
  )
  assert planned.folder.events_path.exists() == tensorboard


def test_what_data_or_builder_refuse_leaves_no_folder(
    workbench, tmp_path, monkeypatch
):
  def refuse(*unused_args):
    raise ValueError('theta is not to be built.')

  def refuse_data(unused_config):
    raise command.InputError('too few clients')

  monkeypatch.setattr(
      workbench_lib.algorithms, 'load_builder', lambda _: refuse
  )
  with pytest.raises(command.InputError, match='theta is not to be built'):
    _run(workbench, tmp_path / 'run', theta='1:7')
  monkeypatch.setattr(workbench, 'check', refuse_data)
  with pytest.raises(command.InputError, match='too few clients'):
    _run(workbench, tmp_path / 'run')
  assert not os.listdir(tmp_path)


def test_bad_input_is_no_failed_run(workbench, tmp_path, monkeypatch):
  def refuse(unused_config):
    raise command.InputError('no such data')

  monkeypatch.setattr(workbench, 'initial_state', refuse)
  with pytest.raises(command.InputError, match='no such data'):
    _run(workbench, tmp_path)
  assert folder.RunFolder(tmp_path).read_status() is None


@pytest.mark.parametrize('after', [False, True])
@pytest.mark.parametrize('moment', range(12))
def test_killed_at_any_write_it_goes_on_with_the_same_numbers(
    workbench, straight, tmp_path, monkeypatch, moment, after
):
  write, calls = files.write_whole, []

  def killing(path, content):
    calls.append(path)
    if after:
      write(path, content)
    if len(calls) > moment:
      raise _Killed
    if not after:
      write(path, content)

  with monkeypatch.context() as patch:
    patch.setattr(files, 'write_whole', killing)
    try:
      _run(workbench, tmp_path)
    except _Killed:
      pass
  _run(workbench, tmp_path)
  assert _numbers(tmp_path) == straight


@pytest.mark.parametrize('call', [1, 2, 4, 8, 10])
def test_killed_in_any_round_it_goes_on_with_the_same_numbers(
    workbench, straight, tmp_path, monkeypatch, call
):
  def kill(number):
    if number == call:
      raise _Killed

  with monkeypatch.context() as patch:
    _patch_next(patch, kill)
    with pytest.raises(_Killed):
      _run(workbench, tmp_path)
  status = folder.RunFolder(tmp_path).read_status()
  # Rounds 3, 6 and 9 are saved.
  saved = (call - 1) // 3 * 3
  assert (status.status, status.round) == (folder.RUNNING, saved)
  kept = checkpoints.saved_rounds(tmp_path / 'checkpoints')
  assert kept[-1:] == ([saved] if saved else [])
  _run(workbench, tmp_path)
  assert _numbers(tmp_path) == straight


def test_torn_row_and_damaged_checkpoint_are_survived(
    workbench, straight, tmp_path, capsys
):
  _run(workbench, tmp_path, rounds=7)
  metrics = tmp_path / 'metrics.csv'
  metrics.write_bytes(metrics.read_bytes()[:-9])
  newest = tmp_path / 'checkpoints' / 'round_00000006.npz'
  newest.write_bytes(newest.read_bytes()[:100])
  _run(workbench, tmp_path)
  assert _numbers(tmp_path) == straight
  said = capsys.readouterr().err
  assert 'round_00000006.npz is damaged' in said
  assert 'metrics.csv is whole only up to round 6' in said


def test_all_checkpoints_lost_means_from_the_beginning(
    workbench, straight, tmp_path
):
  _run(workbench, tmp_path, rounds=7)
  for path in (tmp_path / 'checkpoints').iterdir():
    path.write_bytes(b'')
  _run(workbench, tmp_path)
  assert _numbers(tmp_path) == straight


def test_failure_is_recorded_and_the_run_can_go_on(
    workbench, straight, tmp_path, monkeypatch
):
  def fail(number):
    if number == 8:
      raise RuntimeError('no memory\nleft')

  with monkeypatch.context() as patch:
    _patch_next(patch, fail)
    with pytest.raises(RuntimeError, match='no memory'):
      _run(workbench, tmp_path)
  status = folder.RunFolder(tmp_path).read_status()
  assert status == folder.Status('failed', 6, 'no memory left')
  _run(workbench, tmp_path)
  assert _numbers(tmp_path) == straight


@pytest.mark.parametrize('rates, column', [
    ({'server_learning_rate': 1e30}, 'loss'),
    ({'client_learning_rate': 1e38}, ''),
])
def test_divergence_is_reported_with_its_round(
    workbench, tmp_path, rates, column
):
  outcome = _run(workbench, tmp_path, **rates)
  assert outcome.status == folder.DIVERGED
  assert 1 <= outcome.round < _ROUNDS
  assert column in outcome.reason
  planned = plan.plan_run(
      experiment.replace_settings(_CONFIG, **rates), str(tmp_path)
  )
  assert planned.stage == plan.DONE
  again = _run(workbench, tmp_path, **rates)
  assert again == outcome


def test_round_of_empty_clients_has_no_loss_and_changes_nothing(
    workbench, tmp_path, monkeypatch
):
  draw = data.draw_cohort

  def empty(population, *, round_num, **kwargs):
    cohort = draw(population, round_num=round_num, **kwargs)
    if round_num != 2:
      return cohort
    return cohort._replace(num_examples=np.zeros_like(cohort.num_examples))

  monkeypatch.setattr(data, 'draw_cohort', empty)
  outcome = _run(
      workbench, tmp_path, rounds=3, rounds_per_evaluation=1,
      rounds_per_checkpoint=1,
  )
  assert outcome.status == folder.FINISHED
  rows = _rows(tmp_path)
  assert rows[2]['loss_before_training'] == ''
  assert rows[2]['clients_used'] == '0' and rows[2]['clients_empty'] == '3'
  assert rows[2]['population_loss'] == rows[1]['population_loss']
  assert rows[3]['population_loss'] != rows[2]['population_loss']


def test_second_process_on_a_folder_is_refused(workbench, tmp_path):
  planned = plan.plan_run(_CONFIG, str(tmp_path))
  with folder.RunFolder(tmp_path).locked():
    with pytest.raises(Exception, match='in use by another process'):
      loop.run_experiment(planned, workbench, stopping.Interruption())
  assert set(os.listdir(tmp_path)) == {'lock'}


def test_other_rates_and_seeds_do_not_compile_again(workbench, tmp_path):
  program = workbench.tools(_CONFIG).program
  compiled = program.num_compiled
  assert compiled == 1
  for rate in (0.0, 0.5):
    _run(workbench, tmp_path / str(rate), client_learning_rate=rate)
    _run(workbench, tmp_path / f's{rate}', sampling_seed=3, model_seed=3,
         client_learning_rate=rate)
  assert program.num_compiled == compiled


@pytest.mark.parametrize('changes', [
    {'dtype': 'float64', 'rounds': 2},
    {'loss_before_training': 'full', 'rounds': 2},
    {'rounds_per_evaluation': 0, 'rounds': 2},
    {'client_sampling': 'iid', 'clients_per_round': 101, 'rounds': 2},
])
def test_other_forms_of_the_run(workbench, tmp_path, changes):
  outcome = _run(workbench, tmp_path, **changes)
  assert outcome.status == folder.FINISHED
  rows = _rows(tmp_path)
  first = bool(rows[0]['population_loss'])
  assert first == ('rounds_per_evaluation' not in changes)
  assert rows[2]['population_loss']


def test_full_loss_before_training_of_all_clients_is_population_loss(
    workbench, tmp_path
):
  _run(
      workbench, tmp_path, loss_before_training='full', rounds=1,
      clients_per_round=100, dtype='float64',
  )
  rows = _rows(tmp_path)
  assert float(rows[1]['loss_before_training']) == pytest.approx(
      float(rows[0]['population_loss']), rel=1e-12
  )


def test_new_clients_for_each_round_from_a_generator(workbench, tmp_path):
  settings = experiment.replace_settings(
      _CONFIG, rounds=3, batch_size=1, clients_per_round=200
  )
  settings = dataclasses.replace(
      settings, task=experiment.TaskConfig('quadratics', model='interval')
  )
  planned = plan.plan_run(settings, str(tmp_path))
  outcome = loop.run_experiment(
      planned, workbench, stopping.Interruption(), tensorboard=False
  )
  assert outcome.status == folder.FINISHED
  rows = _rows(tmp_path)
  assert rows[1]['clients_used'] == '200'
  norms = {row['update_norm'] for row in rows[1:]}
  assert len(norms) == 3


@pytest.mark.parametrize('ran_on, is_refused', [
    (('GPU:0', 'CPU:0'), True), (('GPU:0', 'GPU:1'), False),
])
def test_required_gpus_must_have_done_all_of_the_work(
    workbench, tmp_path, monkeypatch, ran_on, is_refused
):
  monkeypatch.setattr(
      execution, 'configure', lambda *_, **__: ('/device:CPU:0',)
  )
  monkeypatch.setattr(execution.Program, 'client_devices', ran_on)
  if is_refused:
    with pytest.raises(RuntimeError, match='ran on GPU:0, CPU:0'):
      _run(workbench, tmp_path, require_gpu=True, rounds=1)
  else:
    outcome = _run(workbench, tmp_path, require_gpu=True, rounds=1)
    assert outcome.status == folder.FINISHED


def test_required_gpus_must_have_done_the_work(
    workbench, tmp_path, monkeypatch):
  # As if TensorFlow listed a GPU, on which nothing then runs.
  monkeypatch.setattr(
      execution, 'configure', lambda *_, **__: ('/device:CPU:0',)
  )
  with pytest.raises(RuntimeError, match='require_gpu: client work ran on CPU'):
    _run(workbench, tmp_path / 'run', require_gpu=True)
  status = folder.RunFolder(tmp_path / 'run').read_status()
  assert status.status == folder.FAILED
  assert 'require_gpu' in status.reason
