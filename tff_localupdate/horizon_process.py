"""An iterative process whose clients query until a horizon."""

import abc
import collections
from collections.abc import Callable
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_localupdate import arguments
from tff_localupdate import model_weights as model_weights_lib
from tff_localupdate.compression import random_seeds


class HorizonProcess(tff.templates.IterativeProcess, abc.ABC):
  """A process, with what a loop around it has to know.

  `initialize` and `next` are TFF computations. The other methods are plain
  functions of a state, which is a NamedTuple with the fields `model_weights`
  and `step_size`; they need no execution context.
  """

  def __init__(
      self,
      initialize_fn: tff.Computation,
      next_fn: tff.Computation,
      initial_values_fn: Callable[[tf.Tensor], Any],
      hparam_names: tuple[str, ...] = ('step_size',),
  ):
    """Makes a process.

    Args:
      initialize_fn: Returns the initial state at the server.
      next_fn: One round.
      initial_values_fn: Maps a seed, int64, to the initial state.
      hparam_names: The fields of the state, all numbers above 0, that
        `set_hparams` may change.
    """
    super().__init__(initialize_fn, next_fn)
    self._initial_values_fn = tf.function(initial_values_fn, autograph=False)
    self._hparam_names = hparam_names

  @abc.abstractmethod
  def samples_needed(self, state: Any) -> int:
    """Returns how many batches of each client the next round reads."""

  @abc.abstractmethod
  def rows_needed(self, state: Any) -> int:
    """Returns N, the rows that `batches` should have in the next round.

    At least `samples_needed`. Rows that are not read may be anything; each N
    compiles anew, and few occur.
    """

  @abc.abstractmethod
  def is_finished(self, state: Any) -> bool:
    """Returns whether all T queries are done; then `next` changes nothing."""

  def initialize_with_seed(self, seed: int) -> Any:
    """Returns the initial state for another seed; nothing compiles anew."""
    random_seeds.check_seed('seed', seed)
    return self._initial_values_fn(tf.constant(seed, tf.int64))

  def get_hparams(self, state: Any) -> collections.OrderedDict[str, Any]:
    """Returns the numbers that `set_hparams` may change, by name."""
    return collections.OrderedDict(
        (name, getattr(state, name)) for name in self._hparam_names
    )

  def set_hparams(
      self, state: Any, hparams: collections.OrderedDict[str, Any]
  ) -> Any:
    """Returns `state` with other values of those, in their dtypes.

    Raises:
      ValueError: If there is any other name, or a number is not above 0.
    """
    changes = {}
    for name, value in hparams.items():
      arguments.check_choice('hparams', name, self._hparam_names)
      arguments.check_positive(name, float(value))
      dtype = tf.convert_to_tensor(getattr(state, name)).dtype
      # The hint keeps a Python float in full precision on its way to float64.
      value = tf.convert_to_tensor(value, dtype_hint=dtype)
      changes[name] = tf.cast(value, dtype)
    return state._replace(**changes)

  def get_model_weights(self, state: Any) -> tff.learning.models.ModelWeights:
    """Returns the model weights in `state`."""
    return state.model_weights

  def set_model_weights(
      self, state: Any, model_weights: tff.learning.models.ModelWeights
  ) -> Any:
    """Returns `state` with other weights of the same shapes and dtypes."""
    return model_weights_lib.replace_weights(state, model_weights)
