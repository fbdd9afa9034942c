"""Layers in the forms that are fast, and repeat bit for bit, on each device.

Each has a fast form with a gradient written by hand and a plain one, whose
gradient TensorFlow derives; the tests compare them.

Pooling and cross-entropy: under deterministic operations XLA has no kernel for
the gradient of max pooling on a GPU, and adds scattered numbers one by one. The
forms here give the same values without either; a CPU keeps TensorFlow's own.

Tables: on a CPU the gradient of a look-up is `tf.IndexedSlices`, only the rows
in use, so that a local step of LocalUpdate leaves the other rows alone. On a
GPU, where additions of slices have no fixed order, it is one dense matrix
product.

LSTM: `lstm_layer` runs the recurrence alone inside its loops. All that can wait
until a loop has ended is one matrix product over all time steps.
"""

import functools
from typing import Any

import tensorflow as tf


def has_gpu() -> bool:
  """Returns whether TensorFlow sees a GPU."""
  return bool(tf.config.get_visible_devices('GPU'))


def max_pool(x: tf.Tensor, *, size: int, stride: int) -> tf.Tensor:
  """Takes maxima over square windows, padded as 'SAME' has it.

  Args:
    x: [B, height, width, channels] of known height and width.
    size: Side of the windows.
    stride: Step from window to window.

  Returns:
    [B, ceil(height / stride), ceil(width / stride), channels]. The gradient of
    a window goes to the first of its largest numbers.
  """
  if not has_gpu():
    return tf.nn.max_pool2d(x, ksize=size, strides=stride, padding='SAME')
  counts, paddings = [], []
  for length in x.shape[1:3]:
    count = -(-length // stride)
    missing = max((count - 1) * stride + size - length, 0)
    counts.append(count)
    paddings.append([missing // 2, missing - missing // 2])
  x = tf.pad(
      x, [[0, 0], *paddings, [0, 0]], constant_values=x.dtype.min
  )
  last_row, last_column = ((count - 1) * stride + 1 for count in counts)
  return functools.reduce(tf.maximum, [
      x[:, i : i + last_row : stride, j : j + last_column : stride]
      for i in range(size) for j in range(size)
  ])


def cross_entropy(label: tf.Tensor, output: tf.Tensor) -> tf.Tensor:
  """Returns the cross-entropy [...] of logits [..., C] with labels [...]."""
  if not has_gpu():
    return tf.nn.sparse_softmax_cross_entropy_with_logits(label, output)
  one_hot = tf.one_hot(label, output.shape[-1], dtype=output.dtype)
  return tf.nn.softmax_cross_entropy_with_logits(one_hot, output)


def rows_of(table: tf.Tensor, indices: tf.Tensor) -> tf.Tensor:
  """Looks up rows [..., D] of a table [V, D] by indices [...] in 0..V-1."""

  @tf.custom_gradient
  def look_up(table: tf.Tensor) -> Any:
    def grad(upstream):
      flat_indices = tf.reshape(indices, [-1])
      rows = tf.reshape(upstream, [-1, table.shape[1]])
      if not has_gpu():
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
      if not has_gpu():
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


def time_major(
    x: tf.Tensor, pad: int, dtype: tf.DType
) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns tokens [B, T] as [T, B], and their mask for `lstm_layer`."""
  tokens = tf.transpose(x)
  # Not `!=`: in the graphs that TFF traces it compares Python objects.
  mask = tf.not_equal(tokens, pad)
  return tokens, tf.cast(mask, dtype)[..., tf.newaxis]


def lstm_layer(
    inputs: tf.Tensor,
    mask: tf.Tensor,
    kernel: tf.Tensor,
    recurrent_kernel: tf.Tensor,
    bias: tf.Tensor,
) -> tf.Tensor:
  """Applies the layer, starting from a zero state.

  With z_t = x_t W + h_{t-1} U + b, gates i, f, o = sigmoid and g = tanh of
  its quarters: c_t = f c_{t-1} + i g and h_t = o tanh(c_t) where the mask is
  1; c_t = c_{t-1} and h_t = h_{t-1} where it is 0.

  Args:
    inputs: x, [T, B, D]; time comes first.
    mask: [T, B, 1], 1 or 0, in the dtype of the inputs.
    kernel: W, [D, 4 H].
    recurrent_kernel: U, [H, 4 H].
    bias: b, [4 H].

  Returns:
    h, [T, B, H]. Gates are in Keras's order i, f, c, o; a masked step keeps
    state and output, as in `tf.keras.layers.LSTM` on a CPU. cuDNN is never
    used: it fails on batches with a fully masked row.
  """

  # The chain rule splits at z_t = x_t W + h_{t-1} U + b. Only dz_t needs the
  # steps in turn, from the last to the first (`_backward`). Once all dz are
  # known, each weight enters z linearly, so its gradient is a sum over t of
  # outer products, which is one product of matrices with T B rows:
  #   dx = dz W',  dW = x' dz,  dU = h_{t-1}' dz,  db = sum dz.
  # TensorFlow's own gradient of a loop would compute these in every step.
  @tf.custom_gradient
  def layer(inputs, kernel, recurrent_kernel, bias):
    projected = tf.tensordot(inputs, kernel, 1) + bias
    outputs, cells, gates = _forward(projected, mask, recurrent_kernel)

    def grad(upstream):
      dz = _backward(upstream, mask, recurrent_kernel, cells, gates)
      previous = _shift(outputs)
      return (
          tf.tensordot(dz, kernel, [[2], [1]]),
          tf.tensordot(inputs, dz, [[0, 1], [0, 1]]),
          tf.tensordot(previous, dz, [[0, 1], [0, 1]]),
          tf.reduce_sum(dz, [0, 1]),
      )

    return outputs, grad

  return layer(inputs, kernel, recurrent_kernel, bias)


def plain_lstm_layer(
    inputs: tf.Tensor,
    mask: tf.Tensor,
    kernel: tf.Tensor,
    recurrent_kernel: tf.Tensor,
    bias: tf.Tensor,
) -> tf.Tensor:
  """Returns `lstm_layer`, step by step, for TensorFlow to derive."""

  def step(state, now):
    h, c = state
    x, keep = now
    z = tf.matmul(x, kernel) + tf.matmul(h, recurrent_kernel) + bias
    i, f, g, o = tf.split(z, 4, axis=1)
    new_c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
    new_h = tf.sigmoid(o) * tf.tanh(new_c)
    return keep * new_h + (1 - keep) * h, keep * new_c + (1 - keep) * c

  units = recurrent_kernel.shape[0]
  zero = tf.zeros([tf.shape(inputs)[1], units], inputs.dtype)
  return tf.scan(step, (inputs, mask), (zero, zero))[0]


def _shift(x: tf.Tensor) -> tf.Tensor:
  """Returns the values of the steps before: zeros, x_1, ..., x_{T-1}."""
  return tf.concat([tf.zeros_like(x[:1]), x[:-1]], 0)


def _forward(
    projected: tf.Tensor, mask: tf.Tensor, recurrent_kernel: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
  """Runs the recurrence; returns h, c [T, B, H] and gates [T, B, 4 H]."""
  steps = projected.shape[0]
  dtype = projected.dtype
  zero = tf.zeros_like(projected[0, :, : recurrent_kernel.shape[0]])
  stacks = tuple(tf.TensorArray(dtype, steps) for _ in range(3))
  # sigmoid(z) = tanh(z / 2) / 2 + 1 / 2: one function for all four gates, which
  # XLA on a CPU computes in two thirds of the time of four and of joining them.
  scale = tf.repeat(tf.constant([0.5, 0.5, 1.0, 0.5], dtype), zero.shape[1])

  def step(t, h, c, hs, cs, gates):
    z = projected[t] + tf.matmul(h, recurrent_kernel)
    gate = scale * tf.tanh(scale * z) + (1 - scale)
    i, f, g, o = tf.split(gate, 4, axis=1)
    keep = mask[t]
    c = keep * (f * c + i * g) + (1 - keep) * c
    h = keep * (o * tf.tanh(c)) + (1 - keep) * h
    return t + 1, h, c, hs.write(t, h), cs.write(t, c), gates.write(t, gate)

  results = tf.while_loop(
      lambda t, *_: t < steps,
      step,
      (0, zero, zero, *stacks),
      maximum_iterations=steps,
  )
  return tuple(stack.stack() for stack in results[3:])


def _backward(
    upstream: tf.Tensor,
    mask: tf.Tensor,
    recurrent_kernel: tf.Tensor,
    cells: tf.Tensor,
    gates: tf.Tensor,
) -> tf.Tensor:
  """Runs the recurrence backwards; returns the gradient of z [T, B, 4 H]."""
  steps = upstream.shape[0]
  previous_cells = _shift(cells)
  zero = tf.zeros_like(upstream[0])
  # Transposed once: XLA on a CPU is ten times slower at h U' than at h (U').
  transposed_kernel = tf.transpose(recurrent_kernel)

  # dh and dc are the gradients with respect to h_t and c_t, as far as later
  # steps give them. Where the mask is 0 the step was the identity, so they pass
  # by unchanged; where it is 1 they go through
  #   h_t = o tanh(c_t),  c_t = f c_{t-1} + i g,
  # and the derivatives of the gates are s (1 - s) for a sigmoid, 1 - g^2 for
  # the tanh.
  def step(t, dh, dc, dzs):
    i, f, g, o = tf.split(gates[t], 4, axis=1)
    keep, tanh_c = mask[t], tf.tanh(cells[t])
    dh += upstream[t]
    dh_new = keep * dh
    dc_new = keep * dc + dh_new * o * (1 - tanh_c * tanh_c)
    dz = tf.concat(
        [
            dc_new * g * i * (1 - i),
            dc_new * previous_cells[t] * f * (1 - f),
            dc_new * i * (1 - g * g),
            dh_new * tanh_c * o * (1 - o),
        ],
        1,
    )
    dh = (1 - keep) * dh + tf.matmul(dz, transposed_kernel)
    dc = (1 - keep) * dc + dc_new * f
    return t - 1, dh, dc, dzs.write(t, dz)

  *_, dzs = tf.while_loop(
      lambda t, *_: t >= 0,
      step,
      (steps - 1, zero, zero, tf.TensorArray(upstream.dtype, steps)),
      maximum_iterations=steps,
  )
  return dzs.stack()
