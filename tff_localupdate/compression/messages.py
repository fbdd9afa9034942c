"""Messages: a header of floats and coded integers, and what they cost.

What is sent is one vector. `flatten` makes it of the weights' structure, a
quantizer makes a header and integers of it, a code makes bytes of these. In a
TFF process `transmit` does all of that but the bytes, which it only counts;
`encode` and `decode` are the same message in bytes, for those who send it.
"""

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_localupdate import arguments
from tff_localupdate.compression import codes
from tff_localupdate.compression import quantizers


def flatten(structure: Any) -> tf.Tensor:
  """Returns the entries of all tensors in one vector [d], leaf after leaf."""
  leaves = [tf.reshape(leaf, [-1]) for leaf in tf.nest.flatten(structure)]
  return tf.concat(leaves, axis=0)


def unflatten(vector: tf.Tensor, like: Any) -> Any:
  """Returns the structure whose `flatten` is `vector`, [d].

  It is like `like`, a structure of tensors of static shapes, d entries in all.
  """
  leaves = tf.nest.flatten(like)
  parts = tf.split(vector, [leaf.shape.num_elements() for leaf in leaves])
  return tf.nest.pack_sequence_as(
      like,
      [tf.reshape(part, leaf.shape) for part, leaf in zip(parts, leaves)],
  )


def check_value_type(name: str, value_type: Any) -> None:
  """Checks that values of a TFF type, called `name`, can be flattened.

  Raises TypeError for anything but tensors of fixed shapes, and ValueError if
  there is no entry, or not one dtype, float32 or float64.
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
  """Returns v min(1, R/|v|), [d]: the nearest vector of norm at most R.

  R, `radius`, is a positive scalar; infinity leaves v as it is, and 0 stays 0.
  The result is not finite if v is not, nor if |v| is too large for the dtype.
  """
  norm = tf.norm(vector)
  clipped = vector * tf.minimum(tf.ones_like(radius), radius / norm)
  # Else it would be 0: a vector that diverges would look like one that rests.
  nothing = tf.constant(np.nan, vector.dtype)
  return tf.where(tf.math.is_inf(norm), nothing, clipped)


class Transmission(NamedTuple):
  """A vector as it arrives, and the cost of sending it.

  Attributes:
    vector: The decoded vector, [d].
    bits: int64, the number of bits of the message.
    was_sent: bool. False if there is no message for the vector, since it or its
      norm in the header is not finite, or an integer is out of the range of the
      code. Then `bits` is 0 and `vector` all NaN: divergence is seen, not
      repaired.
  """

  vector: Any
  bits: Any
  was_sent: Any


def transmit(
    vector: tf.Tensor,
    resolution: quantizers.Resolution,
    seed: tf.Tensor,
    quantizer: quantizers.Quantizer,
    code: codes.Code,
) -> Transmission:
  """Quantizes, counts the bits and decodes, in pure TensorFlow.

  For [d], float32 or float64, and a seed, int64 [2]. The bytes are not built.
  `encode` builds them, in as many bits.
  """
  # All three, whether or not there is a message: a graph has no early exit.
  # Then what is not a message is replaced by what says so.
  quantized = quantizer.quantize(vector, resolution, seed)
  was_sent = tf.logical_and(
      codes.fits(code, quantized.indices),
      tf.reduce_all(tf.math.is_finite(quantized.header)),
  )
  decoded = quantizer.dequantize(quantized, resolution)
  nothing = tf.constant(np.nan, vector.dtype)
  return Transmission(
      vector=tf.where(was_sent, decoded, nothing),
      bits=tf.where(was_sent, count_bits(quantized, code), 0),
      was_sent=was_sent,
  )


def count_bits(
    quantized: quantizers.QuantizedVector, code: codes.Code
) -> tf.Tensor:
  """Returns the exact number of bits of a message, an int64 scalar.

  A float of the header takes the bits of its dtype: 32, or 64 in float64.
  """
  header = tf.size(quantized.header, tf.int64)
  width = 8 * quantized.header.dtype.size
  return header * width + code.length(quantized.indices)


def encode(quantized: quantizers.QuantizedVector, code: codes.Code) -> bytes:
  """Returns the bytes of a message: the header, big-endian, then the integers.

  As many bits as `count_bits` says, up to the filling of the last byte. Raises
  ValueError if an integer is out of the range of the code.
  """
  header = np.asarray(quantized.header)
  return header.astype(header.dtype.newbyteorder('>')).tobytes() + code.encode(
      np.asarray(quantized.indices)
  )


def decode(
    data: bytes,
    code: codes.Code,
    *,
    num_indices: int,
    num_header: int = 0,
    dtype: str = 'float32',
) -> quantizers.QuantizedVector:
  """Returns what `encode` was given, as arrays.

  `dtype` is that of the header, `float32` or `float64`. Raises
  `codes.DecodingError` if the bytes are no such message.
  """
  dtype = np.dtype(arguments.checked_dtype(dtype))
  size = num_header * dtype.itemsize
  if len(data) < size:
    raise codes.DecodingError(
        f'The message is cut short: it has {len(data)} bytes, where its header '
        f'has {size}.'
    )
  header = np.frombuffer(data[:size], dtype.newbyteorder('>')).astype(dtype)
  return quantizers.QuantizedVector(
      indices=code.decode(data[size:], num_indices), header=header
  )
