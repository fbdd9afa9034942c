"""The tasks whose f is known as a formula, by name; needs no TensorFlow."""

import importlib
from typing import Any

# Task -> `module:function`, called with the built task.
_BUILDERS = {
    'mnist_logistic': 'baselines.regret.task_objectives:softmax_regression',
    'scaled_regression': 'baselines.regret.task_objectives:least_squares',
}


def is_known(task_name: str) -> bool:
  """Returns whether the task's f is known as a formula."""
  return task_name in _BUILDERS


def build_objective(task: Any) -> Any:
  """Returns f over all training examples of a built task, in NumPy.

  Args:
    task: A `baselines.tasks.task.Task` for which `is_known`.
  """
  module, _, function = _BUILDERS[task.name].partition(':')
  return getattr(importlib.import_module(module), function)(task)
