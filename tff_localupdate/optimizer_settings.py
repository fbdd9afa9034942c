"""The hyperparameters of all optimizers but the rate; needs no TensorFlow.

The one place of their defaults: builders take them from here, and so do the
settings of experiments, whose names, help and rules are made of this table.
"""

from typing import NamedTuple, Optional, Union


class OptimizerSetting(NamedTuple):
  """A hyperparameter: its default, a few words of help, and its range.

  It is at least `minimum`, greater than `above` and less than `below`.
  """

  default: Union[float, bool]
  help: str
  minimum: Optional[float] = None
  above: Optional[float] = None
  below: Optional[float] = None


def _adaptive(beta_2: float, epsilon: float) -> dict[str, OptimizerSetting]:
  return {
      'beta_1': OptimizerSetting(
          0.9, 'decay of the first moment', minimum=0.0, below=1.0
      ),
      'beta_2': OptimizerSetting(
          beta_2, 'decay of the second moment', minimum=0.0, below=1.0
      ),
      'epsilon': OptimizerSetting(
          epsilon, 'added to the root of the second moment', above=0.0
      ),
      'initial_accumulator': OptimizerSetting(
          0.0, 'start of the second moment', minimum=0.0
      ),
      'bias_correction': OptimizerSetting(
          True, 'correct the moments for their start'
      ),
  }


_ADAGRAD = {
    'initial_accumulator': OptimizerSetting(
        0.1, 'start of the sum of squares', minimum=0.0
    ),
    'epsilon': OptimizerSetting(
        1e-7, 'added to the sum of squares', above=0.0
    ),
}

# By the name of the optimizer, whose builder is `build_NAME` of
# `server_optimizers`. Yogi: Charles and Konecny 2020, section 8 (not TFF's
# defaults); the others have those of `tff.learning.optimizers`.
SERVER: dict[str, dict[str, OptimizerSetting]] = {
    'sgd': {
        'momentum': OptimizerSetting(0.0, 'momentum', minimum=0.0, below=1.0)
    },
    'yogi': _adaptive(0.99, 1e-5),
    'adam': _adaptive(0.999, 1e-7),
    'adagrad': _ADAGRAD,
}

# Of what moves a client between its gradients, see `LocalSteps`.
CLIENT: dict[str, dict[str, OptimizerSetting]] = {
    'sgd': {},
    'momentum': {
        'momentum': OptimizerSetting(
            0.9, 'heavy ball', minimum=0.0, below=1.0
        )
    },
    'adagrad': {
        **_ADAGRAD,
    },
}


def defaults(settings: dict[str, OptimizerSetting]) -> dict[str, float]:
  """Returns the defaults of an optimizer's hyperparameters by name."""
  return {name: own.default for name, own in settings.items()}
