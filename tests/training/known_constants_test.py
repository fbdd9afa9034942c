"""The constants of CEAL's theory, filled in where they are missing."""

import types

import numpy as np
import pytest

from baselines.regret import objectives
from baselines.settings import algorithms
from baselines.settings import experiment
from baselines.training import plan

_CONSTANTS = plan.Constants(smoothness=0.4, noise_scale=1.5)


def _config(task='scaled_regression', **settings):
  return experiment.ExperimentConfig(
      experiment.TaskConfig(task), algorithms.CealConfig(**settings)
  )


def test_measured_are_the_largest_eigenvalue_and_the_noise_of_a_query():
  # f = mean (<a_i, x> - y_i)^2 with a = e_1, 2 e_2 and y = 1, 0, at x = 0:
  # gradients (-2, 0) and (0, 0), their mean (-1, 0), the variance 1.
  f = objectives.LeastSquares([[1.0, 0.0], [0.0, 2.0]], [1.0, 0.0])
  found = plan.measure(f, np.zeros(2), 4)
  # H = diag(1, 4): 2 / N times the squares.
  assert found.smoothness == pytest.approx(4.0, rel=1e-14)
  assert found.noise_scale == pytest.approx(np.sqrt(1.0 / 4), rel=1e-14)


def test_smoothness_and_noise_are_asked_of_any_objective():
  f = types.SimpleNamespace(
      smoothness=2.0, gradient_variance=lambda point: 9.0 * point[0]
  )
  assert plan.measure(f, np.array([4.0]), 1) == (2.0, 6.0)


@pytest.mark.parametrize('given, expected', [
    ({}, (0.5, 1.5)),
    ({'step_size': 3.0}, (3.0, 1.5)),
    ({'noise_scale': 0.25}, (0.5, 0.25)),
    ({'step_size': 3.0, 'noise_scale': 0.25}, (3.0, 0.25)),
])
def test_only_what_is_missing_is_filled_in(given, expected):
  base = _config(**given)
  assert plan.are_missing(base) == (len(given) < 2)
  filled = plan.fill(base, _CONSTANTS)
  algorithm = filled.algorithm
  # 1 / (5 beta).
  assert (algorithm.step_size, algorithm.noise_scale) == expected
  assert not plan.are_missing(filled)
  assert experiment.replace_settings(
      filled, **{n: getattr(base.algorithm, n)
                 for n in ('step_size', 'noise_scale')}
  ) == base


def test_rivals_and_local_update_miss_nothing():
  for algorithm in (
      algorithms.FedAvgConfig(), algorithms.MinibatchSgdConfig(),
      experiment.LocalUpdateConfig(),
  ):
    for task in ('scaled_regression', 'digits'):
      settings = experiment.ExperimentConfig(
        experiment.TaskConfig(task), algorithm
      )
      assert not plan.are_missing(settings)
      plan.check_given(settings)


@pytest.mark.parametrize('given, missing', [
    ({}, 'step_size'), ({'step_size': 0.1}, 'noise_scale'),
    ({'noise_scale': 0.1}, 'step_size'),
])
def test_without_a_formula_they_must_be_given(given, missing):
  plan.check_given(_config(**given))
  asked = _config('digits', **given)
  assert not plan.are_missing(asked)
  with pytest.raises(
      ValueError, match=f'{missing} must be given for task digits: .*None'
  ):
    plan.check_given(asked)
  plan.check_given(
      _config('digits', step_size=0.1, noise_scale=1.0)
  )
