"""Rows of a table by index, with gradients that are summed in a fixed order.

On a CPU the gradient is `tf.IndexedSlices`, the rows that were used: a local
step of LocalUpdate then leaves the other rows alone. Their additions have no
fixed order on a GPU: where TensorFlow sees one, the gradient is one matrix
product, and dense. The forward pass reads the used rows only, on both.
"""

from typing import Any

import tensorflow as tf

from baselines.tasks import gpu_operations


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
      flat_indices = tf.reshape(indices, [-1])
      rows = tf.reshape(upstream, [-1, table.shape[1]])
      if not gpu_operations.has_gpu():
        return _slices(rows, flat_indices, table)
      one_hot = tf.one_hot(flat_indices, table.shape[0], dtype=table.dtype)
      return tf.matmul(one_hot, rows, transpose_a=True)

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
    weights: [B, W] in the dtype of the table, none negative; not
      differentiated.

  Returns:
    [B, D], sum over w of weights[b, w] table[indices[b, w]].
  """

  @tf.custom_gradient
  def multiply(table: tf.Tensor) -> Any:
    def grad(upstream):
      if not gpu_operations.has_gpu():
        rows = weights[..., tf.newaxis] * upstream[:, tf.newaxis]
        return _slices(
            tf.reshape(rows, [-1, table.shape[1]]),
            tf.reshape(indices, [-1]),
            table,
        )
      dense = scatter(indices, weights, table.shape[0])
      return tf.matmul(dense, upstream, transpose_a=True)

    rows = tf.gather(table, indices)
    sums = tf.matmul(tf.expand_dims(weights, 1), rows)
    return tf.squeeze(sums, 1), grad

  return multiply(tf.convert_to_tensor(table))


def rows_by_product(table: tf.Tensor, indices: tf.Tensor) -> tf.Tensor:
  """Returns `rows_of` as a dense product, whose gradient is one too."""
  one_hot = tf.one_hot(indices, table.shape[0], dtype=table.dtype)
  return tf.tensordot(one_hot, table, 1)


def weighted_sums_by_product(
    table: tf.Tensor, indices: tf.Tensor, weights: tf.Tensor
) -> tf.Tensor:
  """Returns `weighted_sums` as a dense product, whose gradient is one too."""
  return tf.matmul(scatter(indices, weights, table.shape[0]), table)


def _slices(
    rows: tf.Tensor, indices: tf.Tensor, table: tf.Tensor
) -> tf.IndexedSlices:
  return tf.IndexedSlices(rows, indices, tf.shape(table, tf.int64))


def scatter(
    indices: tf.Tensor, weights: tf.Tensor, num_columns: int
) -> tf.Tensor:
  """Returns the dense matrix [B, V] of `weighted_sums`."""
  shape = tf.shape(indices)
  examples = tf.broadcast_to(tf.range(shape[0])[:, tf.newaxis], shape)
  # Only zeros meet a number, so maxima are sums. XLA knows that maxima are the
  # same in any order; sums it would add one by one on a GPU.
  return tf.tensor_scatter_nd_max(
      tf.zeros([shape[0], num_columns], weights.dtype),
      tf.stack([examples, indices], axis=2),
      weights,
  )
