"""Settings reach the server optimizers, and their defaults are the same."""

import inspect

import numpy as np
import pytest
import tensorflow as tf

from baselines.algorithms import local_update
from baselines.settings import rates
from tff_localupdate import optimizer_settings
from tff_localupdate import server_optimizers as library


def _first_step(optimizer, gradient=2.0):
  weights = tf.constant([1.0])
  specs = tf.TensorSpec([1], tf.float32)
  state = optimizer.initialize(specs)
  _, new = optimizer.next(state, weights, tf.constant([gradient]))
  return float(new[0])


@pytest.mark.parametrize('name', optimizer_settings.SERVER)
def test_defaults_are_those_of_the_library(name):
  builder = getattr(library, f'build_{name}')
  parameters = inspect.signature(builder).parameters
  defaults = {
      key: p.default
      for key, p in parameters.items()
      if key not in ('learning_rate', 'dtype')
  }
  settings = rates.ServerOptimizerConfig(server_optimizer=name)
  assert settings.hyperparameters == defaults


@pytest.mark.parametrize('settings, expected', [
    ({}, 1.0 - 0.5 * 2.0),
    # The first step of Yogi with bias correction is eta q/(|q| + eps'), and
    # eps' = eps / sqrt(1 - beta_2).
    (
        {'server_optimizer': 'yogi', 'yogi_epsilon': 0.2},
        1.0 - 0.5 * 2.0 / (2.0 + 0.2 / np.sqrt(0.01)),
    ),
    (
        {'server_optimizer': 'adagrad', 'adagrad_initial_accumulator': 12.0},
        1.0 - 0.5 * 2.0 / np.sqrt(16.0 + 1e-7),
    ),
])
def test_first_step(settings, expected):
  built = local_update.build_server_optimizer(
      rates.ServerOptimizerConfig(server_learning_rate=0.5, **settings),
      'float32',
  )
  assert _first_step(built) == pytest.approx(expected, rel=1e-5)
