"""Operations in the forms that suit a GPU, where TensorFlow sees one.

Under deterministic operations, XLA has no kernel for the gradient of max
pooling on a GPU, and adds what is scattered number by number. The forms here
give the same values without either; a CPU keeps TensorFlow's own.
"""

import functools

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
