"""Rows of a table by index, with gradients that are the same on every device.

TensorFlow's own gradient of a gather is sparse, made dense by additions whose
order is not fixed on a GPU. Here it is one matrix product. The forward pass is
a gather all the same: on CPUs the product costs more than the rest of a model
whose table is most of its weights.
"""

from typing import Any

import tensorflow as tf


def rows_of(table: tf.Tensor, indices: tf.Tensor) -> tf.Tensor:
  """Looks up rows.

  Args:
    table: [V, D].
    indices: Integers [...] in 0..V-1.

  Returns:
    [..., D].
  """

  @tf.custom_gradient
  def look_up(table: tf.Tensor) -> Any:
    def grad(upstream):
      one_hot = tf.one_hot(
          tf.reshape(indices, [-1]), table.shape[0], dtype=table.dtype
      )
      flat = tf.reshape(upstream, [-1, table.shape[1]])
      return tf.matmul(one_hot, flat, transpose_a=True)

    return tf.gather(table, indices), grad

  return look_up(tf.convert_to_tensor(table))


def weighted_sums(
    table: tf.Tensor, indices: tf.Tensor, weights: tf.Tensor
) -> tf.Tensor:
  """Sums rows with weights: the product of a sparse matrix and the table.

  Args:
    table: [V, D].
    indices: int32 [B, W] in 0..V-1; within one example they differ, apart from
      those whose weight is 0.
    weights: [B, W] in the dtype of the table; not differentiated.

  Returns:
    [B, D], sum over w of weights[b, w] table[indices[b, w]].
  """

  @tf.custom_gradient
  def multiply(table: tf.Tensor) -> Any:
    def grad(upstream):
      dense = scatter(indices, weights, table.shape[0])
      return tf.matmul(dense, upstream, transpose_a=True)

    rows = tf.gather(table, indices)
    return tf.reduce_sum(weights[..., tf.newaxis] * rows, axis=1), grad

  return multiply(tf.convert_to_tensor(table))


def scatter(
    indices: tf.Tensor, weights: tf.Tensor, num_columns: int
) -> tf.Tensor:
  """Returns the dense matrix [B, V] of `weighted_sums`."""
  shape = tf.shape(indices)
  examples = tf.broadcast_to(tf.range(shape[0])[:, tf.newaxis], shape)
  # Only zeros meet a number, so the sums are the same in any order.
  return tf.scatter_nd(
      tf.stack([examples, indices], axis=2), weights, [shape[0], num_columns]
  )
