"""An optimizer that is given by one formula for a weight tensor."""

import collections
from collections.abc import Callable, Mapping
from typing import Any, Optional

import tensorflow as tf
import tensorflow_federated as tff

from tff_localupdate import arguments

_LEARNING_RATE = tff.learning.optimizers.LEARNING_RATE_KEY
_STEP = 'step'

_State = collections.OrderedDict[str, Any]


class LeafwiseOptimizer(tff.learning.optimizers.Optimizer):
  """Applies a formula to each weight tensor, in the dtype of the weights.

  The state is an ordered dict of `learning_rate` (a scalar, the one
  hyperparameter that is meant to change during training), `step` (int64, the
  number of steps taken) and the slots, each with the structure of the weights.
  All but `step` have the dtype of the weights.
  """

  def __init__(
      self,
      learning_rate: float,
      leaf_step: Callable[..., tuple[tf.Tensor, ...]],
      *,
      dtype: Optional[str] = None,
      initial_slots: Optional[Mapping[str, float]] = None,
      rate_factor: Optional[Callable[[tf.Tensor], tf.Tensor]] = None,
  ):
    """Describes the optimizer.

    Args:
      learning_rate: The initial rate, finite and not negative.
      leaf_step: Maps (rate, weight, gradient, *slots) of one weight tensor to
        (weight, *slots) after the step.
      dtype: `float32` or `float64`, which the weights must have; None takes the
        dtype of the weights.
      initial_slots: Name and constant initial value of each slot.
      rate_factor: Maps the number of the step, counted from 1, in the dtype of
        the rate, to a factor of the rate; None is no factor.

    Raises:
      ValueError: If `learning_rate` or `dtype` is refused.
    """
    arguments.check_not_negative(_LEARNING_RATE, learning_rate)
    self._learning_rate = learning_rate
    self._leaf_step = leaf_step
    self._dtype = None if dtype is None else arguments.checked_dtype(dtype)
    self._initial_slots = dict(initial_slots or {})
    self._rate_factor = rate_factor

  def initialize(self, specs: Any) -> _State:
    """Returns the state before the first step.

    Args:
      specs: A structure of `tf.TensorSpec` as that of the weights.

    Returns:
      The state.

    Raises:
      ValueError: If the dtypes in `specs` differ, or are not the optimizer's.
    """
    dtype = _common_dtype(specs)
    if self._dtype not in (None, dtype):
      raise ValueError(
          'the weights must have the dtype of their optimizer, '
          f'{self._dtype}, found {dtype}.'
      )
    state = collections.OrderedDict([
        (_LEARNING_RATE, tf.constant(self._learning_rate, dtype)),
        (_STEP, tf.constant(0, tf.int64)),
    ])
    for name, value in self._initial_slots.items():
      state[name] = tf.nest.map_structure(
          lambda spec, value=value: tf.fill(
              spec.shape, tf.constant(value, spec.dtype)
          ),
          specs,
      )
    return state

  def next(
      self, state: _State, weights: Any, gradients: Any
  ) -> tuple[_State, Any]:
    """Takes a step; a weight whose gradient is None stays as it is.

    Args:
      state: The state.
      weights: A structure of tensors.
      gradients: The same structure.

    Returns:
      The new state and the new weights.

    Raises:
      ValueError: If structures, shapes or dtypes differ.
    """
    gradients = tff.learning.optimizers.handle_indexed_slices_gradients(
        gradients
    )
    tff.learning.optimizers.check_weights_gradients_match(weights, gradients)
    step = state[_STEP] + 1
    rate = state[_LEARNING_RATE]
    if self._rate_factor is not None:
      rate *= self._rate_factor(tf.cast(step, rate.dtype))
    slots = [state[name] for name in self._initial_slots]
    columns = [tf.nest.flatten(s) for s in (weights, gradients, *slots)]
    stepped = [
        (w, *s) if g is None else self._leaf_step(rate, w, g, *s)
        for w, g, *s in zip(*columns)
    ]
    new_weights, *new_slots = (
        tf.nest.pack_sequence_as(weights, [leaves[i] for leaves in stepped])
        for i in range(1 + len(slots))
    )
    new_state = collections.OrderedDict(
        [(_LEARNING_RATE, state[_LEARNING_RATE]), (_STEP, step)]
    )
    new_state.update(zip(self._initial_slots, new_slots))
    return new_state, new_weights

  def get_hparams(self, state: _State) -> _State:
    """Returns an ordered dict with the `learning_rate`."""
    return collections.OrderedDict([(_LEARNING_RATE, state[_LEARNING_RATE])])

  def set_hparams(self, state: _State, hparams: _State) -> _State:
    """Returns the state with another `learning_rate`, in the same dtype."""
    dtype = state[_LEARNING_RATE].dtype
    # The hint keeps a Python float in full precision on its way to float64.
    rate = tf.convert_to_tensor(hparams[_LEARNING_RATE], dtype_hint=dtype)
    new_state = collections.OrderedDict(state)
    new_state[_LEARNING_RATE] = tf.cast(rate, dtype)
    return new_state


def _common_dtype(specs: Any) -> str:
  dtypes = sorted({spec.dtype.name for spec in tf.nest.flatten(specs)})
  if len(dtypes) != 1 or dtypes[0] not in arguments.FLOAT_DTYPES:
    raise ValueError(
        'the weights must have one dtype, float32 or float64, found '
        f'{", ".join(dtypes) or "no weights"}.'
    )
  return dtypes[0]
