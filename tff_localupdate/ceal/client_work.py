"""What a client of CEAL holds, computes and sends in one exchange."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_localupdate.ceal import exchange_plan
from tff_localupdate.compression import messages
from tff_localupdate.compression import random_seeds
from tff_localupdate.compression import vectors

# How many queries may share a pass over the model; each size is compiled.
_QUERIES_PER_PASS = (1, 8, 64)


class ClientQueries(NamedTuple):
  """The data of one client for one exchange.

  Attributes:
    batches: The structure of `model.input_spec`, leaves [N, B, ...]: a
      mini-batch for each query. The first s of the N count, where s is the
      `next_samples` of the state; the others may be anything.
    seed: int64 scalar, which tells the clients apart (their number will do).
      Clients with the same one round alike.
  """

  batches: Any
  seed: Any


class ClientTotals(NamedTuple):
  """Quantities of one client that the server sums over all clients.

  Attributes:
    vector: The decoded message, [d].
    loss: The mean loss over the samples at the weights received.
    rounding_variance: The expected squared norm of the error of rounding.
    bits: int64, the bits of the message.
    clients: int32, 1.
    clients_not_sent: int32, 1 if there was to be a message but there is none
      for the client's vector, see `messages.Transmission`.
  """

  vector: Any
  loss: Any
  rounding_variance: Any
  bits: Any
  clients: Any
  clients_not_sent: Any


def queries_type(input_spec: Any, batch_size: int) -> tff.StructType:
  """Returns the type of a `ClientQueries`, its N left open."""

  def leaf_type(spec):
    if spec.shape[0] not in (None, batch_size):
      raise ValueError(
          f'batch_size must be that of model.input_spec, {spec.shape[0]}, '
          f'found {batch_size}.'
      )
    shape = [None, batch_size, *spec.shape[1:]]
    return tff.types.tensorflow_to_type(tf.TensorSpec(shape, spec.dtype))

  return tff.to_type(
      ClientQueries(
          batches=tf.nest.map_structure(leaf_type, input_spec),
          seed=tff.TensorType(np.int64),
      )
  )


def send_gradient(
    rules: exchange_plan.ExchangeRules,
    loss_fn: Callable[[Any, Any], tf.Tensor],
    weights: Any,
    client: ClientQueries,
    plan: exchange_plan.ExchangePlan,
    exchange_seed: tf.Tensor,
) -> ClientTotals:
  """Queries x^(k), clips the mean gradient and sends it quantized.

      g_m = mean of the gradients of s_j queries at x^(k)
      g_m <- g_m min(1, R / |g_m|),  R = B_j + G_j
      q_m = Q(g_m, gamma_j), sent in |Code(q_m)| bits

  If the plan sends nothing, no gradient is taken and all is 0.

  Args:
    rules: The rules of the run.
    loss_fn: Maps (weights, batch) to the mean loss over the batch's examples.
    weights: x^(k), the trainable weights received.
    client: The client's data.
    plan: The plan of the exchange.
    exchange_seed: int64 scalar, the seed of this exchange.

  Returns:
    The `ClientTotals`.
  """
  num_samples = tf.where(plan.sends, plan.num_queries, 0)
  loss, gradient = mean_gradient(loss_fn, weights, client.batches, num_samples)
  vector = vectors.clip(vectors.flatten(gradient), plan.uplink_radius)
  sent = messages.transmit(
      vector,
      plan.uplink_resolution,
      random_seeds.derive_seed(exchange_seed, client.seed),
      rules.quantizer,
      rules.code,
  )
  variance = rules.quantizer.rounding_variance(vector, plan.uplink_resolution)

  def if_sends(value):
    return tf.where(plan.sends, value, tf.zeros_like(value))

  return ClientTotals(
      vector=if_sends(sent.vector),
      loss=if_sends(loss),
      rounding_variance=if_sends(variance),
      bits=if_sends(sent.bits),
      clients=tf.constant(1, tf.int32),
      clients_not_sent=if_sends(tf.cast(~sent.was_sent, tf.int32)),
  )


def mean_gradient(
    loss_fn: Callable[[Any, Any], tf.Tensor],
    weights: Any,
    batches: Any,
    num_samples: tf.Tensor,
) -> tuple[tf.Tensor, Any]:
  """Returns mean loss and mean gradient over the first s batches.

  Goes through the batches in passes of 64, then 8, then 1, whose examples are
  one batch each: since all queries are at the same point, their mean is that of
  their examples. Padding is not touched.

  Args:
    loss_fn: Maps (weights, batch of any size) to the mean loss of its examples.
    weights: A structure of tensors of one dtype.
    batches: A structure of tensors [N, B, ...].
    num_samples: s, an int64 scalar. If N is less, all is NaN; if it is 0, all
      is 0.

  Returns:
    The loss, a scalar, and the gradient, a structure like `weights`.
  """
  weights = tf.nest.map_structure(tf.convert_to_tensor, weights)
  dtype = tf.nest.flatten(weights)[0].dtype
  num_rows = tf.shape(tf.nest.flatten(batches)[0], tf.int64)[0]
  sizes = _QUERIES_PER_PASS

  def sums_of(size, start):
    rows = tf.range(size, dtype=tf.int64) + start
    # In range also where this size is not the one taken.
    rows = tf.maximum(tf.minimum(rows, num_rows - 1), 0)
    batch = tf.nest.map_structure(
        lambda leaf: tf.reshape(tf.gather(leaf, rows), [-1, *leaf.shape[2:]]),
        batches,
    )
    means = _loss_and_gradient(loss_fn, weights, batch)
    return tf.nest.map_structure(lambda mean: size * mean, means)

  def add_pass(start, sums):
    fitting = [tf.cast(size <= num_samples - start, tf.int32) for size in sizes]
    index = tf.add_n(fitting) - 1
    more = tf.switch_case(
        index, [lambda size=size: sums_of(size, start) for size in sizes]
    )
    # An index in brackets would have to be a constant for XLA.
    size = tf.gather(tf.constant(sizes, tf.int64), index)
    return start + size, tf.nest.map_structure(tf.add, sums, more)

  zeros = (
      tf.constant(0.0, dtype), tf.nest.map_structure(tf.zeros_like, weights)
  )
  _, sums = tf.while_loop(
      lambda start, _: start < num_samples,
      add_pass,
      (tf.constant(0, tf.int64), zeros),
      parallel_iterations=1,
  )
  count = tf.cast(tf.maximum(num_samples, 1), dtype)
  count = tf.where(num_rows < num_samples, tf.constant(np.nan, dtype), count)
  return tf.nest.map_structure(lambda total: total / count, sums)


def _loss_and_gradient(loss_fn, weights, batch):
  """Returns the loss and its dense gradient, 0 where a weight is not used."""
  with tf.GradientTape(watch_accessed_variables=False) as tape:
    tape.watch(weights)
    loss = loss_fn(weights, batch)
  gradient = tape.gradient(
      loss, weights, unconnected_gradients=tf.UnconnectedGradients.ZERO
  )
  return loss, tf.nest.map_structure(tf.convert_to_tensor, gradient)
