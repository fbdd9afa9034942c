"""A process around another one, whose two rates it sets from round to round.

`decay` and `schedules` wrap processes of any kind. What they share is here:
where a process keeps gamma and eta and what loss it reports (`RateAccess`,
`find_loss`), for the processes of this package and those of `tff.learning`; and
the wrapping itself (`WrappedProcess`, `build_computations`).
"""

import collections
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf
import tensorflow_federated as tff

from tff_localupdate import arguments

_LEARNING_RATE = tff.learning.optimizers.LEARNING_RATE_KEY


class RateAccess(NamedTuple):
  """How to read and write gamma and eta in a process's hyperparameters.

  Attributes:
    get: Maps hyperparameters to (gamma, eta), two scalar tensors.
    set: Maps (hyperparameters, gamma, eta) to hyperparameters of the same
      structure and dtypes.
  """

  get: Callable[[Any], tuple[tf.Tensor, tf.Tensor]]
  set: Callable[[Any, tf.Tensor, tf.Tensor], Any]


def local_update_rates() -> RateAccess:
  """Returns the access to the rates of the processes of this package."""

  def get(hparams):
    return hparams['client_learning_rate'], hparams['server_learning_rate']

  def put(hparams, client_rate, server_rate):
    return _replaced(hparams, {
        ('client_learning_rate',): client_rate,
        ('server_learning_rate',): server_rate,
    })

  return RateAccess(get, put)


def tff_learning_rates(server_rate: str = 'delta') -> RateAccess:
  """Returns the access to the rates of a `tff.learning` process.

  They are the learning rates of the client optimizer and of the optimizer in
  the finalizer, as in all of TFF's variants of federated averaging. In 0.87.0
  only a process that is built of a `model_fn` has the former in its state, not
  one that is built of a `tff.learning.models.FunctionalModel`.

  Args:
    server_rate: `delta`: eta is the server optimizer's rate r itself.
      `gradient`: eta is r gamma. TFF's server steps along the mean difference
      of weights, gamma sum_k g_k, not along q = sum_k g_k. With SGD there, the
      process is LocalUpdate with Theta_{1:K} and eta = r gamma, and for the
      same eta_t = eta_1 beta^j after j decays r has to grow by beta/alpha where
      gamma shrinks by alpha. It needs gamma > 0. An adaptive server optimizer
      is nearly blind to the scale of what it is given: use `delta`.

  Raises:
    ValueError: If `server_rate` is neither of the two.
  """
  arguments.check_choice('server_rate', server_rate, ('delta', 'gradient'))

  def get(hparams):
    gamma = hparams['client_work'][_LEARNING_RATE]
    rate = hparams['finalizer'][_LEARNING_RATE]
    return gamma, rate * gamma if server_rate == 'gradient' else rate

  def put(hparams, client_rate, server_rate_value):
    if server_rate == 'gradient':
      server_rate_value = server_rate_value / client_rate
    return _replaced(hparams, {
        ('client_work', _LEARNING_RATE): client_rate,
        ('finalizer', _LEARNING_RATE): server_rate_value,
    })

  return RateAccess(get, put)


def find_rates(hparams: Any) -> RateAccess:
  """Returns the access that can read what `get_hparams` of a process returned.

  Raises:
    ValueError: If neither `local_update_rates` nor `tff_learning_rates` can.
  """
  for access in (local_update_rates(), tff_learning_rates()):
    try:
      access.get(hparams)
    except (KeyError, TypeError, IndexError):
      continue
    return access
  raise ValueError(
      'rates must be given for a process whose hyperparameters hold no two '
      'known rates (those of tff.learning do if it is built of a model_fn, not '
      f'of a FunctionalModel), found {hparams!r}.'
  )


def find_loss(metrics: Any) -> tf.Tensor:
  """Returns the loss that a process reports of a round.

  For the processes of this package it is `loss_before_training`, f_t of (24).
  For `tff.learning` it is the training metric called `loss`, which is not f_t:
  it is averaged over examples instead of clients, and taken while the clients
  train, batch by batch, at weights that move. Where TFF reports 0 because no
  client had examples, or all of them diverged and were left out, it is NaN
  here; that shows in the metric `num_examples`, which Keras models have.

  Raises:
    ValueError: If there is no such loss.
  """
  if hasattr(metrics, 'loss_before_training'):
    return metrics.loss_before_training
  try:
    train = metrics['client_work']['train']
    loss = train['loss']
  except (KeyError, TypeError, IndexError):
    raise ValueError(
        'loss_fn must be given for a process whose metrics hold no known '
        f'loss, found {metrics!r}.'
    ) from None
  if 'num_examples' not in train:
    return loss
  return tf.where(train['num_examples'] > 0, loss, float('nan'))


def _replaced(hparams: Any, values: dict[tuple[str, ...], tf.Tensor]) -> Any:
  """Returns nested dictionaries with other leaves, in the dtypes of the old."""
  result = collections.OrderedDict(hparams)
  for (name, *rest), value in values.items():
    if rest:
      result[name] = _replaced(result[name], {tuple(rest): value})
    else:
      result[name] = tf.cast(value, tf.convert_to_tensor(result[name]).dtype)
  return result


class WrappedProcess(tff.templates.IterativeProcess):
  """A process around another one, with the inner one's methods.

  They do for this state, a NamedTuple with the inner one as its field
  `process`, what those of the process inside do for its own.
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
    return self._process.get_hparams(state.process)

  def set_hparams(self, state: Any, hparams: Any) -> Any:
    return state._replace(
        process=self._process.set_hparams(state.process, hparams)
    )

  def get_model_weights(self, state: Any) -> Any:
    return self._process.get_model_weights(state.process)

  def set_model_weights(self, state: Any, model_weights: Any) -> Any:
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
    state_type: That of its state; see `checked_types`.
    metrics_type: That of its metrics.
    wrap_fn: Maps its initial state to that of the process around it, a
      NamedTuple with the field `process`.
    advance_fn: Maps (outer state before the round, inner state and metrics
      after it) to the outer state and metrics after it.
  """
  # A round is the inner `next`, as it is, and then one local computation at the
  # server that sees the outer state of before and what the inner round gave.
  # It broadcasts and aggregates nothing of its own, so the whole still has the
  # form that `execution` compiles.
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
