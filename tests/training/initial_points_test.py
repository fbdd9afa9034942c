"""Where runs start: the model's weights, zero, or on the sphere."""

import numpy as np
import pytest

from baselines.settings import experiment
from baselines.tasks import registry
from baselines.training import workbench


@pytest.fixture(scope='module', name='model')
def _model():
  task = registry.build_task(experiment.TaskConfig('digits', model='logistic'))
  return task.build_model(1, 'float32')


def _weights(model, initial_point, seed=1):
  weights = workbench.initial_weights(model, initial_point, seed)
  expected = model.initial_weights[0]
  for found, like in zip(weights.trainable, expected):
    assert found.shape == like.shape and found.dtype == np.float32
  assert len(weights.trainable) == len(expected) == 2
  return np.concatenate([np.ravel(leaf) for leaf in weights.trainable])


def test_models_own_weights_are_kept(model):
  expected = np.concatenate([np.ravel(w) for w in model.initial_weights[0]])
  np.testing.assert_array_equal(_weights(model, 'model'), expected)
  assert expected.any()


def test_zero_is_zero_in_all_weights(model):
  assert not _weights(model, 'zero').any()


def test_sphere_is_one_vector_over_all_weights(model):
  found = _weights(model, 'sphere', seed=4)
  vector = np.random.default_rng(4).standard_normal(650)
  np.testing.assert_allclose(
      found, vector / np.linalg.norm(vector), rtol=1e-6
  )
  assert np.linalg.norm(found) == pytest.approx(1.0, abs=1e-6)


def test_sphere_depends_on_the_seed_and_has_no_direction(model):
  found = np.stack([_weights(model, 'sphere', seed) for seed in range(50)])
  # The mean of 50 of them has a norm of 1 / sqrt(50), in the mean.
  norm = np.linalg.norm(found.mean(axis=0))
  assert norm == pytest.approx(50**-0.5, rel=0.2)
