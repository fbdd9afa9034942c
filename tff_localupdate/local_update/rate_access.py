"""Where a process keeps its two rates, and what loss it reports.

`decay` wraps processes of any kind. What it has to know of one is here, for the
processes of this package and for those of `tff.learning`.
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

  Returns:
    The access.

  Raises:
    ValueError: If `server_rate` is none of the two.
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
  """Returns the access that fits the structure of `hparams`.

  Args:
    hparams: Hyperparameters, as `get_hparams` of a process returns them.

  Returns:
    `local_update_rates` or `tff_learning_rates`, whichever can read them.

  Raises:
    ValueError: If neither can.
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
  client had examples, or all of them diverged and were struck out, it is NaN
  here; that shows in the metric `num_examples`, which Keras models have.

  Args:
    metrics: The metrics of a round.

  Returns:
    The loss, a scalar; NaN if it is of no example.

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
