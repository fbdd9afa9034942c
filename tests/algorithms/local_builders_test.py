"""The adapter builds the process that the settings describe."""

import numpy as np
import pytest

from baselines.algorithms import driver
from baselines.algorithms import local_update
from baselines.settings import algorithms
from baselines.settings import experiment
from baselines.settings import rates
from baselines.tasks import registry


@pytest.fixture(scope='module', name='task')
def _task():
  return registry.build_task(
      experiment.TaskConfig(task='linear_regression')
  )


def _process(task, **settings):
  optimizer = rates.ServerOptimizerConfig(
      server_learning_rate=0.25
  )
  return local_update.build_local_update(
      algorithms.LocalUpdateConfig(**settings),
      driver.BuildContext(
          task.build_model(1, 'float64'),
          task,
          experiment.RunConfig(batch_size=2, dtype='float64'),
          optimizer,
      ),
  ).process


def test_client_type_has_k_batches_of_b(task):
  process = _process(task, theta='1:3')
  member = process.next.type_signature.parameter[1].member
  assert member.batches[0].shape[:2] == (3, 2)


def test_full_loss_asks_for_all_examples(task):
  process = _process(task, theta='1:3', loss_before_training='full')
  member = process.next.type_signature.parameter[1].member
  assert member.examples[0].shape[0] is None


def test_rates_and_dtype_reach_the_state(task):
  process = _process(task, client_learning_rate=0.1)
  state = process.initialize.type_signature.result.member
  assert state.client_learning_rate.dtype == np.float64
