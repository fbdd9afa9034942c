"""The tasks with an f that is a formula are named without TensorFlow."""

import pytest

from baselines.regret import objectives
from baselines.settings import experiment
from baselines.tasks import registry


def test_known_tasks_are_those_of_paper_2():
  known = [name for name in registry.TASKS if registry.TASKS[name].objective]
  assert sorted(known) == ['mnist_logistic', 'scaled_regression']


@pytest.mark.parametrize('name, kind', [
    ('scaled_regression', objectives.LeastSquares),
    ('mnist_logistic', objectives.SoftmaxRegression),
])
def test_objective_is_built_from_the_task(name, kind):
  task = registry.build_task(experiment.TaskConfig(name))
  assert isinstance(objectives.build_objective(task), kind)


def test_other_tasks_have_none():
  task = registry.build_task(experiment.TaskConfig('linear_regression'))
  with pytest.raises(KeyError):
    objectives.build_objective(task)
