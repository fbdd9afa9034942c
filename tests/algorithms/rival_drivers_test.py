"""The builders give each rival what its settings say."""

import numpy as np
import pytest

from baselines.algorithms import driver
from baselines.algorithms import rival_drivers
from baselines.algorithms import rivals
from baselines.settings import algorithms
from baselines.settings import experiment
from baselines.tasks import registry as tasks
from tests.algorithms import driver_cases as cases


@pytest.fixture(scope='module', name='task')
def _task():
  return tasks.build_task(experiment.TaskConfig('scaled_regression'))


def _build(task, name, **changes):
  asked = experiment.replace_settings(
      experiment.ExperimentConfig(
          experiment.TaskConfig('scaled_regression'), cases.ALGORITHMS[name]
      ),
      dtype='float64', batch_size=3, **changes,
  )
  return algorithms.load_builder(asked.algorithm)(
      asked.algorithm,
      driver.BuildContext(task.build_model(1, 'float64'), task, asked.run),
  )


@pytest.mark.parametrize('name', cases.RIVALS)
def test_process_has_the_settings(task, name):
  built = _build(task, name)
  assert isinstance(built, rival_drivers.RivalDriver)
  assert isinstance(built, driver.HorizonDriver) and built.gains_by_xla
  assert isinstance(built.process, rivals.RivalProcess)
  member = built.process.next.type_signature.parameter[1].member
  assert member.batches[0].shape == (10, 3, 30)
  state = built.process.initialize_with_seed(7)
  algorithm = cases.ALGORITHMS[name]
  assert float(state.step_size) == algorithm.step_size
  assert state.step_size.dtype == np.float64
  assert int(state.seed) == 7
  assert built.samples_needed(state) == built.rows_needed(state) == 10
  assert not built.is_finished(state)
  hparams = {
      k: float(v) for k, v in built.process.get_hparams(state).items()
  }
  assert hparams == {n: getattr(algorithm, n) for n in algorithm.RATES}


@pytest.mark.parametrize('name', cases.RIVALS)
def test_initial_state_has_weights_rates_and_seed(task, name):
  built = _build(task, name)
  rates = {n: 0.25 for n in cases.ALGORITHMS[name].RATES}
  weights = task.build_model(1, 'float64').initial_weights
  moved = built.process.get_model_weights(
      built.process.initialize_with_seed(1)
  )._replace(trainable=[np.asarray(weights[0][0]) + 1.5])
  state = built.initial_state(None, moved, rates, 11)
  np.testing.assert_array_equal(cases.point_of(state), np.full(30, 1.5))
  assert int(state.seed) == 11 and float(state.step_size) == 0.25


@pytest.mark.filterwarnings('ignore:horizon 5 is shorter')
def test_last_round_asks_for_what_is_left_in_rows_of_the_usual_number(task):
  built = _build(task, 'fed_avg', horizon=5)
  state = built.process.initialize_with_seed(0)
  assert built.samples_needed(state) == 5
  assert built.rows_needed(state) == 10


def test_cohort_gives_every_client_its_own_seed(task):
  built = _build(task, 'fed_paq')
  batches = (np.zeros([4, 10, 3, 30]), np.zeros([4, 10, 3, 1]))
  drawn = driver.CohortData(batches, np.full(4, 200, np.int32))
  cohort = built.cohort(drawn)
  assert cohort.seed.tolist() == [0, 1, 2, 3]
  assert cohort.seed.dtype == np.int64
  assert cohort.batches is batches
