"""CEAL in the driver: its constants, its columns, what it warns of."""

import warnings

import numpy as np
import pytest

from baselines.results import folder
from baselines.settings import algorithms
from baselines.settings import experiment
from tests.algorithms import driver_cases as cases


@pytest.fixture(scope='module', name='done')
def _done(tmp_path_factory):
  return cases.run(cases.settings('ceal'), tmp_path_factory.mktemp('ceal'))


@pytest.fixture(scope='module', name='problem')
def _problem():
  return cases.SquaredError(cases.settings('ceal'))


def test_epochs_and_stages_rise_as_the_test_says(done):
  epoch, stage = done.column('epoch'), done.column('stage')
  stepped = done.column('stepped')
  assert epoch[0] == 1 and stage[0] == 4
  np.testing.assert_array_equal(np.diff(epoch), stepped[:-1])
  np.testing.assert_array_equal(np.diff(stage), 1 - stepped[:-1])
  assert 0 < stepped[:-1].sum() < len(stepped) - 1
  # |g| passes from 4 tau_j = 12 * 2^-(j+1).
  sent = done.column('sent') > 0
  thresholds = done.column('threshold')[sent]
  np.testing.assert_array_equal(thresholds, 12.0 * 2.0 ** -(stage[sent] + 1))
  np.testing.assert_array_equal(
      done.column('estimated_gradient_norm')[sent] >= thresholds,
      stepped[sent] > 0,
  )


def test_every_exchange_has_the_samples_of_its_stage(done):
  # ceil(c sigma^2 log(16 M j^2 / delta) 4^j / M).
  for stage, queries in zip(
      done.column('stage')[:-1], done.column('num_queries')
  ):
    log = np.log(16 * 10 * stage**2 / 0.1)
    assert queries == np.ceil(0.0222 * 0.36 * log * 4**stage / 10)


def test_true_norm_is_that_of_f_where_it_was_queried(done, problem):
  every = np.arange(len(problem.y))
  for found, point in zip(done.column('true_gradient_norm'), done.points()):
    expected = np.linalg.norm(problem.gradient(point, every))
    assert found == pytest.approx(expected, rel=1e-9)


def test_rest_of_the_horizon_is_not_sent(done):
  row = done.rows[-1]
  assert row['sent'] == '0' and row['examples_used'] == '0'
  for column in (
      'loss_before_training', 'update_norm', 'estimated_gradient_norm',
      'threshold', 'rounding_norm',
  ):
    assert row[column] == ''
    assert done.rows[-2][column] != ''


def test_horizon_shorter_than_the_first_stage_sends_nothing_and_warns(
    tmp_path, problem
):
  cases.REPORTS.clear()
  asked = cases.settings(
      algorithms.CealConfig(step_size=1.0, noise_scale=1.8), horizon=30
  )
  done = cases.run(asked, tmp_path)
  assert done.outcome.status == folder.FINISHED
  assert len(done.rounds) == 1
  assert done.rows[1]['sent'] == '0' and done.rows[1]['time_used'] == '30'
  assert (
    done.outcome.final['uplink_bits']
    == done.outcome.final['downlink_bits']
    == 0
  )
  start, end = done.points()
  np.testing.assert_array_equal(start, end)
  assert done.outcome.final['cumulative_regret'] == pytest.approx(
      10 * 30 * (problem.value(start) - problem.best), rel=1e-9
  )
  (warning,) = [text for text in cases.REPORTS if 'warning' in text]
  # s_1 = ceil(40 * 1.8^2 * log(1600) * 4 / 10).
  assert 'horizon' in warning and '383' in warning


def test_run_that_sticks_says_so_once(tmp_path, capsys):
  # Section 5, danger: what rounding adds is near the threshold, so the test
  # passes again and again, and the stage stays although |grad f| falls.
  asked = cases.settings(
      algorithms.CealConfig(
          step_size=0.3, noise_scale=1.8, sample_constant=0.04,
          uplink_resolution=0.8, downlink_resolution=0.08, first_stage=4,
          grid='coordinate',
      ),
      'mnist_logistic', horizon=400, batch_size=25, initial_point='zero',
  )
  done = cases.run(asked, tmp_path)
  passes = done.column('passes_by_rounding')
  assert passes.max() >= 5
  rises = np.diff(passes)
  assert ((rises == 1) | (passes[1:] == 0)).all()
  by_rounding = passes > 0
  threshold = done.column('threshold')[by_rounding]
  # |g|, without what rounding adds, is below 3/4 of the threshold; so is
  # the true norm.
  least = 0.75 * threshold
  norm = done.column('estimated_gradient_norm')[by_rounding]
  rounding = done.column('rounding_norm')[by_rounding]
  assert (np.sqrt(norm**2 - rounding**2) < least).all()
  assert (done.column('true_gradient_norm')[by_rounding] < least).all()
  third = done.rows[1 + passes.tolist().index(3)]
  said = [
      line for line in capsys.readouterr().err.splitlines() if 'stuck' in line
  ]
  assert said == [
      'CEAL is stuck in stage 4: 3 tests in a row passed by rounding '
      f'(estimated norm {float(third["estimated_gradient_norm"]):.3g}, of '
      f'which rounding adds {float(third["rounding_norm"]):.3g}; threshold '
      '0.375). A smaller uplink_resolution helps.'
  ]


def test_run_that_does_not_stick_says_nothing(tmp_path, capsys):
  cases.run(cases.settings('ceal'), tmp_path)
  assert 'stuck' not in capsys.readouterr().err


def test_missing_constants_are_those_of_the_theory(tmp_path, problem):
  cases.REPORTS.clear()
  asked = cases.settings(algorithms.CealConfig(), horizon=20)
  done = cases.run(asked, tmp_path)
  # beta: the largest singular value; sigma: the noise of one query, B = 2.
  n = len(problem.y)
  beta = 2 * np.linalg.norm(problem.x, 2) ** 2 / n**2
  point, every = done.points()[0], np.arange(n)
  mean = problem.gradient(point, every)
  noise = [
      np.sum((problem.gradient(point, [i]) - mean) ** 2) for i in range(n)
  ]
  sigma = np.sqrt(np.mean(noise) / 2)
  state = cases.workbench().initial_state(asked)
  assert float(state.step_size) == pytest.approx(1 / (5 * beta), rel=1e-9)
  texts = [text for text in cases.REPORTS if text.startswith('measured')]
  assert f'noise_scale {sigma:.6g}, smoothness {beta:.6g}' in texts[0]
  # The program has this sigma: s_1 of the warning.
  samples = np.ceil(40 * sigma**2 * np.log(1600) * 4 / 10)
  (warning,) = [text for text in cases.REPORTS if 'warning' in text]
  assert f'{samples:.0f}' in warning
  assert float(done.rows[1]['server_learning_rate']) == float(state.step_size)


def test_given_constants_are_kept():
  asked = cases.settings(algorithms.CealConfig(noise_scale=0.5), horizon=20)
  state = cases.workbench().initial_state(asked)
  assert 0.3 < float(state.step_size) < 0.8
  asked = experiment.replace_settings(asked, step_size=0.125)
  assert float(cases.workbench().initial_state(asked).step_size) == 0.125


def test_oracle_takes_the_epochs_that_the_true_norm_asks_for(tmp_path, problem):
  asked = cases.settings(
      algorithms.CealConfig(
          step_size=1.0, noise_scale=0.6, epoch_length='oracle',
          grid='coordinate', uplink_resolution=0.7, downlink_resolution=0.6,
      )
  )
  done = cases.run(asked, tmp_path)
  assert done.outcome.status == folder.FINISHED
  assert done.column('time_used')[-1] == 150
  sent = done.column('sent') > 0
  assert sent.sum() >= 2 and done.column('stepped')[sent].all()
  every = np.arange(len(problem.y))
  norms = [
      np.linalg.norm(problem.gradient(point, every))
      for point in done.points()[:-1]
  ]
  # t_k = ceil(2 sigma^2 / (M |grad f|^2)).
  wanted = np.ceil(2 * 0.36 / (10 * np.square(norms)))
  np.testing.assert_array_equal(
      done.column('num_queries')[sent], wanted[sent]
  )


def test_clients_without_examples_are_refused(done):
  tools = cases.workbench().tools(done.config)
  cohort = done.rounds[0].cohort
  drawn = (cohort.batches, np.array([5, 0], np.int32))

  class Drawn:
    batches, num_examples = drawn

  with pytest.raises(ValueError, match='clients that all have examples'):
    tools.driver.cohort(Drawn)


def test_xla_is_off_unless_asked_for(done):
  auto = experiment.replace_settings(done.config, jit='auto')
  with warnings.catch_warnings():
    warnings.simplefilter('ignore')
    driver = cases.workbench().tools(auto).driver
  assert not driver.gains_by_xla
