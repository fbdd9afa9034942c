"""One vector for a structure of tensors, and back."""

from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_localupdate import arguments


def flatten(structure: Any) -> tf.Tensor:
  """Returns the entries of all tensors in one vector [d], leaf after leaf."""
  leaves = [tf.reshape(leaf, [-1]) for leaf in tf.nest.flatten(structure)]
  return tf.concat(leaves, axis=0)


def unflatten(vector: tf.Tensor, like: Any) -> Any:
  """Returns the structure whose `flatten` is `vector`.

  Args:
    vector: [d].
    like: A structure of tensors of static shapes, d entries in all.

  Returns:
    A structure like `like`, with the entries of `vector`.
  """
  leaves = tf.nest.flatten(like)
  parts = tf.split(vector, [leaf.shape.num_elements() for leaf in leaves])
  return tf.nest.pack_sequence_as(
      like,
      [tf.reshape(part, leaf.shape) for part, leaf in zip(parts, leaves)],
  )


def check_value_type(name: str, value_type: Any) -> None:
  """Checks that values of a TFF type can be flattened to one vector.

  Args:
    name: What errors call the type.
    value_type: The type.

  Raises:
    TypeError: If there is anything but tensors of fixed shapes in it.
    ValueError: If there is no entry, or not one dtype, float32 or float64.
  """
  leaves = tff.structure.flatten(value_type) if isinstance(
      value_type, tff.StructType
  ) else [value_type]
  size = 0
  for leaf in leaves:
    shape = leaf.shape if isinstance(leaf, tff.TensorType) else None
    if shape is None or not tf.TensorShape(shape).is_fully_defined():
      raise TypeError(
          f'{name} must be made of tensors of fixed shapes, found {leaf}.'
      )
    size += tf.TensorShape(shape).num_elements()
  dtypes = sorted({tf.as_dtype(leaf.dtype).name for leaf in leaves})
  if not size or len(dtypes) != 1 or dtypes[0] not in arguments.FLOAT_DTYPES:
    raise ValueError(
        f'{name} must have entries of one dtype, float32 or float64, found '
        f'{size} entries of dtype {", ".join(dtypes) or "none"}.'
    )


def clip(vector: tf.Tensor, radius: tf.Tensor) -> tf.Tensor:
  """Returns v min(1, R/|v|): the nearest vector of norm at most R.

  Args:
    vector: v, [d].
    radius: R > 0, a scalar; infinity leaves v as it is.

  Returns:
    The clipped vector, [d]; 0 stays 0. It is not finite if v is not, nor if |v|
    is too large for the dtype.
  """
  norm = tf.norm(vector)
  clipped = vector * tf.minimum(tf.ones_like(radius), radius / norm)
  # Else it would be 0: a vector that diverges would look like one that rests.
  nothing = tf.constant(np.nan, vector.dtype)
  return tf.where(tf.math.is_inf(norm), nothing, clipped)
