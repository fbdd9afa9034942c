"""What a client of LocalUpdate holds, as TFF types, computes and sends."""

from collections.abc import Callable
from typing import Any, NamedTuple, Optional

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_localupdate import arguments
from tff_localupdate import models
from tff_localupdate import theta as theta_lib
from tff_localupdate.local_update import inner_loop
from tff_localupdate.local_update import local_steps as local_steps_lib

# Maps (training loss, weights, batches, client_learning_rate) to the update of
# a client and the loss of its first batch, both at these weights.
UpdateFn = Callable[..., tuple[Any, tf.Tensor]]


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


class SeededClientBatches(NamedTuple):
  """`ClientBatches` with an int64 seed, which tells clients apart."""

  batches: Any
  num_examples: Any
  seed: Any


class SeededUpdate(NamedTuple):
  """What a client hands to an aggregator that draws by the client's seed.

  `update` is q^i; `is_used` is false for an empty client, which sends nothing.
  """

  update: Any
  seed: Any
  is_used: Any


class ClientBatchesAndExamples(NamedTuple):
  """`ClientBatches` with all examples of the client.

  `examples` has the structure of `model.input_spec`, leaves [N, ...], of which
  the first `num_examples` rows count.
  """

  batches: Any
  num_examples: Any
  examples: Any


class ClientEpochs(NamedTuple):
  """The data of one client for one round in epoch mode, as tensors.

  Attributes:
    batches: The structure of `model.input_spec`, leaves [K_max, B, ...]. Of
      batch k the first `batch_sizes[k]` rows count.
    batch_sizes: int32 [K_max], the rows of each batch: those of the K_i steps
      of the client first, each positive, and then zeros.
    num_examples: As in `ClientBatches`.
  """

  batches: Any
  batch_sizes: Any
  num_examples: Any


class ClientTotals(NamedTuple):
  """What the server sums over all clients; int32 where not said otherwise.

  Attributes:
    loss: The loss before training; 0 if the client is empty.
    clients_used: 1 if the client has examples, else 0.
    clients_empty: 1 if it has none, else 0.
    clients_non_finite: 1 if its update is not finite, else 0.
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
    losses: models.ModelLosses,
    weights: Any,
    client: Any,
    client_learning_rate: tf.Tensor,
    update_fn: UpdateFn,
    loss_before_training: str,
) -> ClientResult:
  """Does the work of a client whose data are tensors.

  The loss before training is that of the weights received: f_i(x_t) itself if
  `full`, else an unbiased estimate; see `process.build_local_update`.

  Args:
    losses: The losses of the model.
    weights: x_t, the trainable weights received.
    client: A value of the type that the options ask for.
    client_learning_rate: gamma_t, a scalar.
    update_fn: What makes an update of the batches, InnerLoop for one.
    loss_before_training: `drawn`, `first_batch` or `full`.
  """
  update, loss = update_fn(
      losses.training, weights, client.batches, client_learning_rate
  )
  drawn = tf.nest.map_structure(
      lambda leaf: tf.reshape(leaf, [-1, *leaf.shape[2:]]), client.batches
  )
  num_drawn = tf.nest.flatten(drawn)[0].shape[0]
  if loss_before_training == 'full':
    loss = models.mean_example_loss(
        losses.examples,
        weights,
        client.examples,
        client.num_examples,
        rows_per_pass=num_drawn,
    )
  elif loss_before_training == 'drawn':
    loss = losses.evaluation(weights, drawn)
  is_empty = client.num_examples <= 0
  result = _result(update, loss, num_drawn, is_empty)
  if not hasattr(client, 'seed'):
    return result
  seeded = SeededUpdate(result.update, client.seed, tf.logical_not(is_empty))
  return result._replace(update=seeded)


def sequence_client_work(
    losses: models.ModelLosses,
    weights: Any,
    batches: tf.data.Dataset,
    client_learning_rate: tf.Tensor,
    theta: theta_lib.Theta,
    local_steps: local_steps_lib.LocalSteps = local_steps_lib.PLAIN,
) -> ClientResult:
  """Does the work of a client whose data are a sequence of batches.

  The client takes the first K(Theta) batches. A shorter sequence starts again
  at its beginning; one without any batch is an empty client. Batches may differ
  in size. The loss before training is the mean over the examples taken.

  The arguments are those of `tensor_client_work` and `inner_loop.inner_loop`.
  """
  num_found = batches.take(1).reduce(tf.constant(0), lambda n, _: n + 1)
  # Not `==`, which compares identities in the graphs that TFF traces in.
  is_empty = tf.equal(num_found, 0)

  @tf.function  # Iterators need one.
  def sum_gradients(weights, batches, num_steps):
    # An iterator, since functions given to `reduce` never run on a GPU.
    iterator = iter(batches.repeat())
    return _sum_gradients(
        losses,
        weights,
        lambda step: next(iterator),
        client_learning_rate,
        theta,
        num_steps,
        local_steps,
    )

  update, loss, num_taken = sum_gradients(
      weights, batches, tf.where(is_empty, 0, theta.num_steps)
  )
  return _result(update, loss, num_taken, is_empty)


def epoch_client_work(
    losses: models.ModelLosses,
    weights: Any,
    client: ClientEpochs,
    client_learning_rate: tf.Tensor,
    local_steps: local_steps_lib.LocalSteps = local_steps_lib.PLAIN,
    loss_before_training: str = 'drawn',
) -> ClientResult:
  """Does the work of a client that goes through its data in epochs.

  InnerLoop with the batches that the client has, each of the size that it has,
  and theta_k = 1 for each of them: q = sum_k g_k, k = 1, ..., K_i.

  The arguments are those of `sequence_client_work`. The loss before training is
  `drawn`, which is f_i(x_t) if the epochs are whole, or `first_batch`.
  """
  has_rows = tf.cast(client.batch_sizes > 0, tf.int32)
  num_steps = tf.reduce_sum(tf.math.cumprod(has_rows))
  is_empty = (client.num_examples <= 0) | tf.equal(num_steps, 0)

  def batch_of_step(step):
    # Rows that do not count are cut off, not masked: so is the mean right for
    # any loss, and what they hold does not matter.
    size = tf.gather(client.batch_sizes, step)
    batch = inner_loop.batch_at(client.batches, step)
    return tf.nest.map_structure(lambda leaf: leaf[:size], batch)

  update, loss, num_taken = _sum_gradients(
      losses,
      weights,
      batch_of_step,
      client_learning_rate,
      theta_lib.Theta.ones(client.batch_sizes.shape[0]),
      tf.where(is_empty, 0, num_steps),
      local_steps,
      loss_before_training,
  )
  return _result(update, loss, num_taken, is_empty)


def _sum_gradients(
    losses: models.ModelLosses,
    weights: Any,
    batch_of_step: Callable[[tf.Tensor], Any],
    client_learning_rate: tf.Tensor,
    theta: theta_lib.Theta,
    num_steps: tf.Tensor,
    local_steps: local_steps_lib.LocalSteps,
    loss_before_training: str = 'drawn',
) -> tuple[Any, tf.Tensor, tf.Tensor]:
  """Returns q, the loss before training, and the number of examples taken."""
  dtype = tf.nest.flatten(weights)[0].dtype

  def loss_and_size(step, batch, loss):
    size = tf.shape(tf.nest.flatten(batch)[0], tf.int64)[0]
    if loss_before_training == 'first_batch':
      return *inner_loop.first_loss(step, batch, loss), size
    # Not the current loss, which is one after some steps.
    return losses.evaluation(weights, batch) * tf.cast(size, dtype), size

  update, (loss, num_taken) = inner_loop.sum_gradients(
      losses.training,
      weights,
      batch_of_step,
      client_learning_rate,
      theta,
      num_steps,
      observe=loss_and_size,
      observed=(tf.constant(0.0, dtype), tf.constant(0, tf.int64)),
      local_steps=local_steps,
  )
  if loss_before_training == 'drawn':
    loss /= tf.cast(num_taken, dtype)
  return update, loss, num_taken


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


def batches_type(
    input_spec: Any, num_steps: int, batch_size: int
) -> tff.StructType:
  """Returns the type of a `ClientBatches` of leaves [K, B, ...].

  `input_spec` has leaves [B or None, ...]; ValueError for another B.
  """
  arguments.check_count('batch_size', batch_size)
  for spec in tf.nest.flatten(input_spec):
    if spec.shape[0] not in (None, batch_size):
      raise ValueError(
          f'batch_size must be that of model.input_spec, {spec.shape[0]}, '
          f'found {batch_size}.'
      )
  return tff.to_type(
      ClientBatches(
          batches=_with_rows(input_spec, [num_steps, batch_size]),
          num_examples=tff.TensorType(np.int32),
      )
  )


def seeded_batches_type(
    input_spec: Any, num_steps: int, batch_size: int
) -> tff.StructType:
  """Returns the type of a `SeededClientBatches`, as `batches_type` does."""
  batches = batches_type(input_spec, num_steps, batch_size)
  return tff.to_type(
      SeededClientBatches(
          batches=batches.batches,
          num_examples=batches.num_examples,
          seed=tff.TensorType(np.int64),
      )
  )


def batches_and_examples_type(
    input_spec: Any,
    num_steps: int,
    batch_size: int,
    num_padded_examples: Optional[int],
) -> tff.StructType:
  """Returns the type of a `ClientBatchesAndExamples`, as `batches_type` does.

  N = `num_padded_examples` rows hold the examples; None leaves it open.
  """
  if num_padded_examples is not None:
    arguments.check_count('num_padded_examples', num_padded_examples)
  batches = batches_type(input_spec, num_steps, batch_size)
  return tff.to_type(
      ClientBatchesAndExamples(
          batches=batches.batches,
          num_examples=batches.num_examples,
          examples=_with_rows(input_spec, [num_padded_examples]),
      )
  )


def epochs_type(
    input_spec: Any, num_padded_steps: int, batch_size: int
) -> tff.StructType:
  """Returns the type of a `ClientEpochs`; `input_spec` leaves the rows open."""
  arguments.check_count('num_padded_steps', num_padded_steps)
  for spec in tf.nest.flatten(input_spec):
    if spec.shape[0] is not None:
      raise ValueError(
          'model must leave the number of rows of a batch open, since the last '
          f'batch of an epoch may be short, found {spec.shape[0]} in its '
          'input_spec.'
      )
  batches = batches_type(input_spec, num_padded_steps, batch_size)
  return tff.to_type(
      ClientEpochs(
          batches=batches.batches,
          batch_sizes=tff.TensorType(np.int32, [num_padded_steps]),
          num_examples=batches.num_examples,
      )
  )


def sequence_type(input_spec: Any) -> tff.SequenceType:
  """Returns the type of a sequence of batches."""
  return tff.SequenceType(tff.types.tensorflow_to_type(input_spec))


def _with_rows(input_spec: Any, rows: list[Optional[int]]) -> Any:
  """Returns the structure of types with `rows` in place of the batch size."""
  return tf.nest.map_structure(
      lambda spec: tff.types.tensorflow_to_type(
          tf.TensorSpec(rows + spec.shape[1:].as_list(), spec.dtype)
      ),
      input_spec,
  )
