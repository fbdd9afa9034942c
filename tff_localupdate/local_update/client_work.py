"""What a client of LocalUpdate holds, computes and sends."""

from typing import Any, NamedTuple

import tensorflow as tf

from tff_localupdate import model_losses
from tff_localupdate import theta as theta_lib
from tff_localupdate.local_update import inner_loop


class ClientBatches(NamedTuple):
  """The data of one client for one round, as tensors.

  Attributes:
    batches: The K mini-batches S_1, ..., S_K, drawn with replacement from the
      client's examples: the structure of `model.input_spec`, leaves
      [K, B, ...].
    num_examples: int32 scalar, the number of examples that the client holds. 0
      marks an empty client, whose tensors do not matter.
  """

  batches: Any
  num_examples: Any


class ClientBatchesAndExamples(NamedTuple):
  """The data of one client for one round, with all of its examples.

  Attributes:
    batches: As in `ClientBatches`.
    num_examples: As in `ClientBatches`.
    examples: All examples: the structure of `model.input_spec`, leaves
      [N, ...], of which the first `num_examples` rows count.
  """

  batches: Any
  num_examples: Any
  examples: Any


class ClientTotals(NamedTuple):
  """Quantities of one client that the server sums over all clients.

  Attributes:
    loss: The loss before training; 0 if the client is empty.
    clients_used: int32, 1 if the client has examples, else 0.
    clients_empty: int32, 1 if it has none, else 0.
    clients_non_finite: int32, 1 if its update is not finite, else 0.
    examples_used: int64, the number of examples drawn.
  """

  loss: Any
  clients_used: Any
  clients_empty: Any
  clients_non_finite: Any
  examples_used: Any


class ClientResult(NamedTuple):
  """What one client sends: its update q^i, and its totals."""

  update: Any
  totals: ClientTotals


def tensor_client_work(
    losses: model_losses.ModelLosses,
    weights: Any,
    client: Any,
    client_learning_rate: tf.Tensor,
    theta: theta_lib.Theta,
    loss_before_training: str,
) -> ClientResult:
  """Does the work of a client whose data are tensors.

  The update is InnerLoop's q. The loss before training is that of the weights
  received: f_i(x_t) itself if `full`, else an unbiased estimate.

  Args:
    losses: The losses of the model.
    weights: x_t, the trainable weights received.
    client: A `ClientBatches`; for `full` a `ClientBatchesAndExamples`.
    client_learning_rate: gamma_t, a scalar.
    theta: The Theta weights.
    loss_before_training: Over which examples that loss is taken: `drawn`, the
      K B drawn ones, which costs a forward pass; `first_batch`, the B ones of
      the first step, which costs nothing; `full`, all that the client has.

  Returns:
    The `ClientResult`.
  """
  update, loss = inner_loop.inner_loop_and_first_loss(
      losses.training, weights, client.batches, client_learning_rate, theta
  )
  drawn = tf.nest.map_structure(
      lambda leaf: tf.reshape(leaf, [-1, *leaf.shape[2:]]), client.batches
  )
  num_drawn = tf.nest.flatten(drawn)[0].shape[0]
  if loss_before_training == 'full':
    loss = model_losses.mean_example_loss(
        losses.examples,
        weights,
        client.examples,
        client.num_examples,
        rows_per_pass=num_drawn,
    )
  elif loss_before_training == 'drawn':
    loss = losses.evaluation(weights, drawn)
  return _result(update, loss, num_drawn, client.num_examples <= 0)


def sequence_client_work(
    losses: model_losses.ModelLosses,
    weights: Any,
    batches: tf.data.Dataset,
    client_learning_rate: tf.Tensor,
    theta: theta_lib.Theta,
) -> ClientResult:
  """Does the work of a client whose data are a sequence of batches.

  The client takes the first K(Theta) batches. A shorter sequence starts again
  at its beginning; one without any batch is an empty client. Batches may differ
  in size. The loss before training is the mean over the examples taken.

  Args:
    losses: The losses of the model.
    weights: x_t, the trainable weights received.
    batches: The client's batches.
    client_learning_rate: gamma_t, a scalar.
    theta: The Theta weights.

  Returns:
    The `ClientResult`.
  """
  dtype = tf.nest.flatten(weights)[0].dtype
  num_found = batches.take(1).reduce(tf.constant(0), lambda n, _: n + 1)
  # Not `==`, which compares identities in the graphs that TFF traces in.
  is_empty = tf.equal(num_found, 0)

  def loss_and_size(step, batch, loss):
    del step, loss  # That is a loss after some steps.
    size = tf.shape(tf.nest.flatten(batch)[0], tf.int64)[0]
    return losses.evaluation(weights, batch) * tf.cast(size, dtype), size

  @tf.function  # Iterators need one.
  def sum_gradients(weights, batches, num_steps):
    # An iterator, since functions given to `reduce` never run on a GPU.
    iterator = iter(batches.repeat())
    return inner_loop.sum_gradients(
        losses.training,
        weights,
        lambda step: next(iterator),
        client_learning_rate,
        theta,
        num_steps,
        observe=loss_and_size,
        observed=(tf.constant(0.0, dtype), tf.constant(0, tf.int64)),
    )

  update, (loss, num_taken) = sum_gradients(
      weights, batches, tf.where(is_empty, 0, theta.num_steps)
  )
  return _result(update, loss / tf.cast(num_taken, dtype), num_taken, is_empty)


def _result(
    update: Any, loss: tf.Tensor, num_drawn: Any, is_empty: tf.Tensor
) -> ClientResult:
  """Returns what is sent: zeros by an empty client, whatever it computed."""
  used = tf.cast(~is_empty, tf.int32)
  computed = (update, loss)
  # A branch, not a product: it costs no pass over the weights, and what an
  # empty client computed need not be finite.
  update, loss = tf.cond(
      is_empty,
      lambda: tf.nest.map_structure(tf.zeros_like, computed),
      lambda: tf.nest.map_structure(tf.identity, computed),
  )
  is_finite = tf.reduce_all([
      tf.reduce_all(tf.math.is_finite(leaf)) for leaf in tf.nest.flatten(update)
  ])
  return ClientResult(
      update=update,
      totals=ClientTotals(
          loss=loss,
          clients_used=used,
          clients_empty=1 - used,
          clients_non_finite=tf.cast(~is_finite, tf.int32),
          examples_used=tf.cast(num_drawn, tf.int64) * tf.cast(used, tf.int64),
      ),
  )
