"""Server optimizers from their settings."""

import tensorflow_federated as tff

from baselines.algorithms import server_optimizer_config
from tff_localupdate import server_optimizers

_BUILDERS = {
    'sgd': server_optimizers.build_sgd,
    'yogi': server_optimizers.build_yogi,
    'adam': server_optimizers.build_adam,
    'adagrad': server_optimizers.build_adagrad,
}


def build(
    config: server_optimizer_config.ServerOptimizerConfig, dtype: str
) -> tff.learning.optimizers.Optimizer:
  """Returns the server optimizer that `config` describes.

  Args:
    config: Its settings.
    dtype: The type of the weights and so of the optimizer's state.
  """
  return _BUILDERS[config.server_optimizer](
      config.server_learning_rate, dtype=dtype, **config.hyperparameters
  )
