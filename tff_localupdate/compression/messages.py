"""Messages: a header of floats and coded integers, and what they cost."""

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tff_localupdate import arguments
from tff_localupdate.compression import codes
from tff_localupdate.compression import quantizers


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

  The bytes are not built. `encode` builds them, in as many bits.

  Args:
    vector: [d], float32 or float64.
    resolution: The resolution, as the quantizer takes it.
    seed: int64 [2].
    quantizer: The quantizer.
    code: The code.

  Returns:
    The `Transmission`.
  """
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

  Args:
    quantized: What is sent, as tensors or arrays.
    code: The code.

  Returns:
    The bytes, 8 of them for each `count_bits` up to the filling of the last.

  Raises:
    ValueError: If an integer is out of the range of the code.
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

  Args:
    data: The bytes.
    code: The code.
    num_indices: The number of integers; as the rest, known to both sides.
    num_header: The number of floats in the header.
    dtype: Their dtype, `float32` or `float64`.

  Returns:
    The `QuantizedVector`.

  Raises:
    codes.DecodingError: If the bytes are no such message.
    ValueError: If `dtype` is neither.
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
