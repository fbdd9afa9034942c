"""The objectives of paper 2's tasks from their training examples."""

from baselines.regret import objectives
from baselines.tasks import mnist_logistic
from baselines.tasks import scaled_regression
from baselines.tasks import task as task_lib


def least_squares(task: task_lib.Task) -> objectives.LeastSquares:
  """Returns f of the task `scaled_regression`."""
  x, y = task.train.features
  return objectives.LeastSquares(
      x, y.ravel(), scaled_regression.LOSS_FACTORS[task.model_id]
  )


def softmax_regression(
    task: task_lib.Task,
) -> objectives.SoftmaxRegression:
  """Returns f of the task `mnist_logistic`."""
  x, y = task.train.features
  return objectives.SoftmaxRegression(
      x, y, mnist_logistic.NUM_CLASSES, mnist_logistic.PENALTY
  )
