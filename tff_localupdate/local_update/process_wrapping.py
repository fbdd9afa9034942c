"""A process around another one, whose rates it sets from round to round."""

from collections.abc import Callable
from typing import Any

import tensorflow_federated as tff

from tff_localupdate import arguments


class WrappedProcess(tff.templates.IterativeProcess):
  """A process around another one, with the inner one's methods.

  Its state is a NamedTuple with the field `process`, the inner state.
  """

  def __init__(
      self,
      initialize_fn: tff.Computation,
      next_fn: tff.Computation,
      process: tff.templates.IterativeProcess,
  ):
    super().__init__(initialize_fn, next_fn)
    self._process = process

  def get_hparams(self, state: Any) -> Any:
    """Returns the hyperparameters of the process inside."""
    return self._process.get_hparams(state.process)

  def set_hparams(self, state: Any, hparams: Any) -> Any:
    """Returns `state` with other hyperparameters of the process inside."""
    return state._replace(
        process=self._process.set_hparams(state.process, hparams)
    )

  def get_model_weights(self, state: Any) -> Any:
    """Returns the model weights in `state`."""
    return self._process.get_model_weights(state.process)

  def set_model_weights(self, state: Any, model_weights: Any) -> Any:
    """Returns `state` with other model weights."""
    return state._replace(
        process=self._process.set_model_weights(state.process, model_weights)
    )


def build_computations(
    process: tff.templates.IterativeProcess,
    state_type: tff.Type,
    metrics_type: tff.Type,
    wrap_fn: Callable[[Any], Any],
    advance_fn: Callable[[Any, Any, Any], tuple[Any, Any]],
) -> tuple[tff.Computation, tff.Computation]:
  """Returns `initialize` and `next` around those of `process`.

  Args:
    process: The process inside.
    state_type: The type of its state.
    metrics_type: The type of its metrics.
    wrap_fn: Maps its initial state to that of the process around it, a
      NamedTuple with the field `process`.
    advance_fn: Maps (outer state before the round, inner state and metrics
      after it) to the outer state and metrics after it.
  """
  wrap = tff.tensorflow.computation(wrap_fn, state_type)
  full_type = wrap.type_signature.result
  advance = tff.tensorflow.computation(
      advance_fn, [full_type, state_type, metrics_type]
  )

  @tff.tensorflow.computation(full_type)
  def process_state(state):
    return state.process

  @tff.federated_computation
  def initialize():
    return tff.federated_map(wrap, process.initialize())

  @tff.federated_computation(
      tff.FederatedType(full_type, tff.SERVER),
      process.next.type_signature.parameter[1],
  )
  def next_fn(state, clients):
    inner = tff.federated_map(process_state, state)
    output = process.next(inner, clients)
    new_state, metrics = tff.federated_map(
        advance, (state, output[0], output[1])
    )
    return tff.learning.templates.LearningProcessOutput(new_state, metrics)

  return initialize, next_fn


def checked_types(
    process: tff.templates.IterativeProcess,
) -> tuple[tff.Type, tff.Type]:
  """Returns the types of a process's state and metrics.

  Raises:
    TypeError: If `process` has none, or no hyperparameters.
    ValueError: If it changes its rates itself: the process around it would
      undo that, or not see it.
  """
  arguments.check_type('process', process, tff.templates.IterativeProcess)
  if isinstance(process, WrappedProcess):
    raise ValueError(
        'process must leave its rates as they are from round to round, found '
        f'a {type(process).__name__}.'
    )
  for name in ('get_hparams', 'set_hparams'):
    if not hasattr(process, name):
      raise TypeError(f'process must have {name}, found {process!r}.')
  signature = process.next.type_signature
  for part in (signature.parameter, signature.result):
    if not isinstance(part, tff.StructType) or len(part) != 2:
      raise TypeError(
          'process must map state and client data to state and metrics, found '
          f'next of type {signature}.'
      )
  if not isinstance(signature.result[1], tff.FederatedType):
    raise TypeError(
        'process must report metrics of one federated type, found '
        f'{signature.result[1]}.'
    )
  return process.state_type.member, signature.result[1].member
