"""CEAL and its rivals through the loop: time, bits, regret, stops."""

import json

import numpy as np
import pytest

from baselines.regret import counter
from baselines.regret import objectives
from baselines.results import folder as folder_lib
from baselines.settings import algorithms
from baselines.settings import experiment
from tests.algorithms import driver_cases as cases

_EVERY = list(cases.ALGORITHMS)


class _Killed(BaseException):
  """Ends the loop as SIGKILL would: nothing is caught, nothing tidied."""


@pytest.fixture(scope='module', name='folder')
def _folder(tmp_path_factory):
  return tmp_path_factory.mktemp('straight')


@pytest.fixture(scope='module', name='straight')
def _straight(folder):
  """Each algorithm, run without a stop."""
  return {
      name: cases.run(cases.settings(name), folder / name) for name in _EVERY
  }


@pytest.fixture(scope='module', name='problem')
def _problem():
  return cases.SquaredError(cases.settings('fed_avg'))


@pytest.mark.parametrize('name', _EVERY)
def test_run_ends_with_its_horizon(straight, name):
  done = straight[name]
  horizon = done.config.run.horizon
  assert done.outcome.status == folder_lib.FINISHED
  assert done.outcome.round == len(done.rows) - 1
  # The loop leaves the process out of a round that is cut short, but for CEAL.
  assert len(done.rounds) == done.outcome.round - (name != 'ceal')
  assert done.column('time_used')[-1] == horizon
  np.testing.assert_array_equal(
      done.column('time_used'), np.cumsum(done.column('num_queries'))
  )
  if name != 'ceal':
    assert done.outcome.round == done.config.num_rounds == 5
    assert done.column('num_queries').tolist() == [10, 10, 10, 10, 5]


@pytest.mark.parametrize('name', _EVERY)
def test_bits_of_the_run_are_the_sums_of_those_of_its_rounds(straight, name):
  done = straight[name]
  for way in ('uplink', 'downlink'):
    found = done.column(f'cumulative_{way}_bits')
    np.testing.assert_allclose(
        found, np.cumsum(done.column(f'{way}_bits')), rtol=1e-15
    )
    assert done.outcome.final[f'{way}_bits'] == found[-1] > 0
  sent = done.column('sent')
  for way in ('uplink', 'downlink'):
    np.testing.assert_array_equal(done.column(f'{way}_bits') > 0, sent > 0)
  # The last round is cut short by the horizon: queried, but not sent.
  assert sent[-1] == 0 and sent[:-1].all()


@pytest.mark.parametrize('name, uplink, downlink', [
    ('minibatch_sgd', 64 * 30, 64 * 30),
    ('fed_avg', 64 * 30, 64 * 30),
    # s = 3: 30 (1 + ceil(log2 4)) = 90 bits behind one float.
    ('fed_paq', 64 + 90, 64 * 30),
    ('fed_com', 64 + 90, 64 * 30),
])
def test_bits_of_the_rivals_are_those_of_section_7(
    straight, name, uplink, downlink
):
  done = straight[name]
  assert done.column('uplink_bits').tolist() == [uplink] * 4 + [0]
  assert done.column('downlink_bits').tolist() == [downlink] * 4 + [0]


def test_row_0_tells_the_regret_before_any_query(straight, problem):
  for done in straight.values():
    row = done.rows[0]
    assert float(row['cumulative_regret']) == 0.0
    assert float(row['regret_points']) == 0
    assert row['average_regret'] == row['time_used'] == ''
    assert float(row['last_regret']) == pytest.approx(
        problem.value(done.points()[0]) - problem.best, rel=1e-9
    )


@pytest.mark.parametrize('name', _EVERY)
def test_regret_is_that_of_plain_loops(straight, problem, name):
  done = straight[name]
  expected = list(cases.regret_by_loops(problem, done))
  np.testing.assert_allclose(
      done.column('cumulative_regret'), [e[0] for e in expected], rtol=1e-9
  )
  np.testing.assert_allclose(
      done.column('average_regret'),
      [problem.value(e[1]) - problem.best for e in expected], rtol=1e-9,
  )
  np.testing.assert_allclose(
      done.column('last_regret'),
      [problem.value(p) - problem.best for p in done.points()[1:]], rtol=1e-9,
  )
  assert (
    done.outcome.final['cumulative_regret']
    == done.column('cumulative_regret')[-1]
  )
  moves = done.config.algorithm.QUERIES_MOVE
  points = cases.M * cases.HORIZON if moves else len(done.rows) - 1
  assert done.column('regret_points')[-1] == points


def test_replayed_ends_are_where_the_clients_end(straight, problem):
  done = straight['fed_avg']
  objective = objectives.build_objective(
      cases.workbench().task(done.config.task)
  )
  points = done.points()
  for number in range(1, 5):
    paths = cases.local_paths(
        problem, done.config, points[number - 1], number, cases.LOCAL_STEPS
    )
    mean = np.mean([end for _, end in paths], axis=0)
    np.testing.assert_allclose(points[number], mean, atol=1e-9)
    replayed = counter.replay_local_steps(
        objective, points[number - 1],
        cases.drawn_rows(done.config, number, cases.LOCAL_STEPS),
        counter.LocalRule(0.1),
    )
    np.testing.assert_allclose(
        points[number], replayed.ends.mean(axis=0), atol=1e-9
    )
    assert np.abs(points[number] - points[number - 1]).max() > 1e-3


def test_minibatch_sgd_steps_along_the_mean_of_all_gradients(straight, problem):
  done = straight['minibatch_sgd']
  points = done.points()
  for number in range(1, 5):
    rows = cases.drawn_rows(done.config, number, cases.LOCAL_STEPS)
    gradient = problem.gradient(points[number - 1], rows.ravel())
    np.testing.assert_allclose(
        points[number], points[number - 1] - 1.0 * gradient, atol=1e-9
    )


@pytest.mark.parametrize('name', ['fed_paq', 'fed_com'])
def test_quantized_rivals_differ_from_the_exact_mean_by_rounding(
    straight, problem, name
):
  done = straight[name]
  factor = 5.0 if name == 'fed_com' else 1.0
  start, found = done.points()[:2]
  changes = [
      end - start for _, end in cases.local_paths(
          problem, done.config, start, 1, cases.LOCAL_STEPS
      )
  ]
  error = (found - start) / factor - np.mean(changes, axis=0)
  # Each coordinate of a client is off by less than |v| / s.
  most = np.mean([np.linalg.norm(change) for change in changes]) / 3
  assert 0.01 * most < np.abs(error).max() < most


def test_columns_hold_what_every_algorithm_reports(straight):
  for name, done in straight.items():
    sent = done.column('sent') > 0
    assert (done.column('clients_used')[sent] == cases.M).all()
    assert (done.column('clients_not_sent') == 0).all()
    assert (done.column('clients_non_finite') == 0).all()
    examples = done.column('num_queries')[sent] * cases.M * 2
    np.testing.assert_array_equal(done.column('examples_used')[sent], examples)
    assert np.isfinite(done.column('loss_before_training')[sent]).all()
    rate = 'server_learning_rate' if name == 'ceal' else 'client_learning_rate'
    if name != 'minibatch_sgd':
      eta = done.config.algorithm.step_size
      assert (done.column(rate)[sent] == eta).all()


@pytest.mark.parametrize('name', ['fed_avg', 'ceal'])
def test_regret_of_the_logistic_regression_is_that_of_plain_loops(
    tmp_path, name
):
  algorithm = {
      'fed_avg': algorithms.FedAvgConfig(4, 0.05),
      'ceal': algorithms.CealConfig(
          step_size=0.3, noise_scale=1.8, sample_constant=0.04,
          uplink_resolution=0.12, downlink_resolution=0.08, first_stage=3,
          grid='coordinate',
      ),
  }[name]
  asked = cases.settings(
      algorithm, 'mnist_logistic', initial_point='zero',
      horizon=60 if name == 'ceal' else 9,
  )
  done = cases.run(asked, tmp_path)
  problem = cases.CrossEntropy(asked)
  expected = [total for total, _ in cases.regret_by_loops(problem, done)]
  np.testing.assert_allclose(
      done.column('cumulative_regret'), expected, rtol=1e-9
  )
  assert done.column('last_regret')[-1] < float(done.rows[0]['last_regret'])


@pytest.mark.parametrize('name', cases.LOCAL)
def test_every_25th_point_is_close_and_says_so(tmp_path, name):
  changes = dict(horizon=100, local_steps=50, step_size=0.02)
  exact = cases.run(cases.settings(name, **changes), tmp_path / 'exact')
  thinned = cases.run(
      cases.settings(name, regret_every=25, **changes), tmp_path / 'thinned'
  )
  regrets = [r.column('cumulative_regret')[-1] for r in (exact, thinned)]
  assert 0 < abs(regrets[1] / regrets[0] - 1) < 0.05
  assert exact.column('regret_points')[-1] == 1000
  assert thinned.column('regret_points')[-1] == 40
  # All else is exact whatever n is.
  for column in ('average_regret', 'last_regret', 'update_norm'):
    np.testing.assert_array_equal(exact.column(column), thinned.column(column))
  for folder, n in (('exact', 1), ('thinned', 25)):
    record = json.loads((tmp_path / folder / 'config.json').read_text())
    assert record['settings']['algorithm']['regret_every'] == n


@pytest.mark.parametrize('name', ['ceal', 'fed_paq'])
def test_killed_in_any_round_it_goes_on_with_the_same_numbers(
    straight, folder, tmp_path, name
):
  expected = cases.left(folder / name, straight[name].rows)
  stages = straight[name].column('stage') if name == 'ceal' else None
  stepped = straight[name].column('stepped') if name == 'ceal' else None
  within_an_epoch = 0
  num_rounds = len(expected[0]) - 1
  for call in range(1, len(straight[name].rounds) + 1):
    def kill(number, call=call):
      if number == call:
        raise _Killed

    path = tmp_path / str(call)
    with pytest.raises(_Killed):
      cases.run(straight[name].config, path, kill)
    assert folder_lib.RunFolder(path).read_status().status == 'running'
    resumed = cases.run(straight[name].config, path)
    assert cases.left(path, resumed.rows) == expected
    # Rounds 2, 4, ... are saved; the last one of FedPAQ trains nothing.
    left = num_rounds - (call - 1) // 2 * 2
    assert len(resumed.rounds) == left - (name != 'ceal')
    if name == 'ceal' and call > 2 and not stepped[(call - 1) // 2 * 2 - 1]:
      within_an_epoch += 1
  assert stages is None or within_an_epoch


def test_damaged_state_of_the_regret_means_from_the_checkpoint_before(
    straight, folder, tmp_path
):
  done = straight['fed_avg']
  path = tmp_path / 'run'

  def kill(number):
    if number == 4:
      raise _Killed

  with pytest.raises(_Killed):
    cases.run(done.config, path, kill)
  newest = path / 'checkpoints' / 'round_00000002.npz'
  newest.write_bytes(newest.read_bytes()[:-400])
  resumed = cases.run(done.config, path)
  assert len(resumed.rounds) == 4
  expected = cases.left(folder / 'fed_avg', done.rows)
  assert cases.left(path, resumed.rows) == expected


def test_finished_run_is_not_run_again(straight, folder):
  for name, done in straight.items():
    again = cases.run(done.config, folder / name)
    assert not again.rounds and again.rows == done.rows
    assert again.outcome == done.outcome


@pytest.mark.parametrize('initial_point', ['zero', 'sphere'])
def test_all_algorithms_start_at_the_same_point(straight, initial_point):
  points = []
  for name in straight:
    asked = cases.settings(name, initial_point=initial_point)
    points.append(cases.point_of(cases.workbench().initial_state(asked)))
  norm = 1.0 if initial_point == 'sphere' else 0.0
  for point in points:
    np.testing.assert_array_equal(point, points[0])
    assert np.linalg.norm(point) == pytest.approx(norm, abs=1e-12)
  if initial_point == 'sphere':
    for done in straight.values():
      np.testing.assert_array_equal(done.points()[0], points[0])
    other = cases.settings('fed_avg', model_seed=4)
    moved = cases.point_of(cases.workbench().initial_state(other))
    assert np.linalg.norm(moved - points[0]) > 0.1


@pytest.mark.filterwarnings('error::RuntimeWarning')
def test_steps_that_grow_are_reported_as_divergence(tmp_path):
  done = cases.run(cases.settings('fed_avg', step_size=1e60), tmp_path)
  assert done.outcome.status == folder_lib.DIVERGED
  assert done.outcome.round < 5


@pytest.mark.parametrize('name', _EVERY)
def test_runs_on_a_task_of_paper_1(tmp_path, name):
  changes = {} if name == 'ceal' else dict(horizon=6, local_steps=2)
  asked = cases.settings(
      name, 'digits', 'logistic', step_size=0.02, rounds_per_evaluation=1,
      initial_point='model', dtype='float32', **changes
  )
  done = cases.run(asked, tmp_path)
  assert done.outcome.status == folder_lib.FINISHED
  assert done.column('time_used')[-1] == asked.run.horizon
  assert 'cumulative_regret' not in done.rows[0]
  assert done.outcome.final['cumulative_regret'] is None
  losses = done.column('population_loss', slice(None))
  assert np.isfinite(losses).all() and losses[-1] < losses[0]


@pytest.mark.parametrize('quantizer, resolution, bits', [
    # 32 bits of the norm, 650 (1 + ceil(log2 6)) of the integers.
    ('qsgd', 5.0, 32 + 650 * 4),
    ('grid_vector', 0.5, None),
])
def test_local_update_with_quantized_messages(
    tmp_path, quantizer, resolution, bits
):
  asked = cases.settings(
      experiment.LocalUpdateConfig(
          theta='1:2', uplink_quantizer=quantizer,
          quantizer_resolution=resolution,
      ),
      'digits', 'logistic', rounds=3, dtype='float32', initial_point='model',
  )
  done = cases.run(asked, tmp_path)
  found = done.column('uplink_bits')
  if bits:
    assert found.tolist() == [bits] * 3
  else:
    # Signed unary: two bits for each of 650 numbers are hardly reached.
    assert (found > 650).all() and len(set(found)) == 3
  assert done.column('downlink_bits').tolist() == [32 * 650] * 3
  _check_seeds(asked, done)


def _check_seeds(asked, done):
  """The rounding follows the sampling seed, also on the same cohort."""
  tools = cases.workbench().tools(asked)
  first = done.rounds[0]
  after = []
  for seed in (5, 5, 6):
    state = tools.driver.initial_state(
        tools.program, first.before.model_weights, asked.process_rates, seed
    )
    after.append(
        cases.point_of(tools.program.next(state, first.cohort)[0])
    )
  np.testing.assert_array_equal(after[0], cases.point_of(first.after))
  np.testing.assert_array_equal(after[0], after[1])
  assert not np.array_equal(after[0], after[2])
