"""The objectives of paper 2's tasks from their training examples."""

from baselines.experiment import least_squares as least_squares_lib
from baselines.experiment import softmax_regression as softmax_regression_lib
from baselines.tasks import mnist_logistic
from baselines.tasks import scaled_regression
from baselines.tasks import task as task_lib


def least_squares(task: task_lib.Task) -> least_squares_lib.LeastSquares:
  """Returns f of the task `scaled_regression`."""
  x, y = task.train.features
  return least_squares_lib.LeastSquares(
      x, y.ravel(), scaled_regression.LOSS_FACTORS[task.model_id]
  )


def softmax_regression(
    task: task_lib.Task,
) -> softmax_regression_lib.SoftmaxRegression:
  """Returns f of the task `mnist_logistic`."""
  x, y = task.train.features
  return softmax_regression_lib.SoftmaxRegression(
      x, y, mnist_logistic.NUM_CLASSES, mnist_logistic.PENALTY
  )
