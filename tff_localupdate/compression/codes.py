"""Codes: from vectors of integers to bytes and back, and exact lengths.

`encode` and `decode` are NumPy on the host; `length` is TensorFlow, so that a
TFF process can count the bits of a message that it does not have to build. More
codes are in `elias_codes`.

Both sides know the dimension d. Codes are canonical: bytes that `decode`
accepts are those that `encode` makes of the result. Without a checksum, which
no paper here counts, a flipped bit can give the message of another vector.
"""

import abc

import numpy as np
import tensorflow as tf

from tff_localupdate import arguments
from tff_localupdate.compression import bit_strings
from tff_localupdate.compression import quantizers

DecodingError = bit_strings.DecodingError


class Code(abc.ABC):
  """A code for vectors of integers, each of magnitude at most 2^31 - 1."""

  @abc.abstractmethod
  def length(self, indices: tf.Tensor) -> tf.Tensor:
    """Returns the exact number of bits of int64 [d], an int64 scalar."""

  @abc.abstractmethod
  def decode(self, data: bytes, dimension: int) -> np.ndarray:
    """Returns the integers, int64 [d]; raises DecodingError."""

  def encode(self, indices: np.ndarray) -> bytes:
    """Returns the bytes of int64 [d], the last one filled up with zeros.

    Raises:
      ValueError: If an integer is out of the range of the code.
    """
    indices = np.asarray(indices, np.int64)
    low, high = self.index_range()
    wrong = indices[(indices < low) | (indices > high)]
    if wrong.size:
      raise ValueError(
          f'indices must be whole numbers from {low} to {high} in this code, '
          f'found {wrong[0]}.'
      )
    return self._encode(indices)

  def index_range(self) -> tuple[int, int]:
    """Returns the least and the largest integer that the code can carry."""
    return -quantizers.MAX_INDEX, quantizers.MAX_INDEX

  @abc.abstractmethod
  def _encode(self, indices: np.ndarray) -> bytes:
    """Encodes integers that are in range."""


class SignedUnaryCode(Code):
  """|k| ones, one zero, then a sign bit if k is not 0 (0 plus, 1 minus).

  The length of one integer is |k| + 1 + [k != 0]. The code of CEAL here.
  """

  def length(self, indices: tf.Tensor) -> tf.Tensor:
    signs = tf.cast(tf.not_equal(indices, 0), tf.int64)
    return tf.reduce_sum(tf.abs(indices) + 1 + signs)

  def _encode(self, indices):
    magnitudes, nonzero = np.abs(indices), indices != 0
    starts = _starts(magnitudes + 1 + nonzero)
    zeros = starts[:-1] + magnitudes
    plus = zeros[indices > 0] + 1
    data = np.full(-(-int(starts[-1]) // 8), 0xFF, np.uint8)
    filling = np.arange(starts[-1], 8 * len(data))
    # Ones everywhere but at the zeros: long runs cost nothing per bit.
    positions = np.concatenate([zeros, plus, filling])
    np.bitwise_and.at(
        data, positions >> 3, ~(128 >> (positions & 7)).astype(np.uint8)
    )
    return data.tobytes()

  def decode(self, data: bytes, dimension: int) -> np.ndarray:
    zeros = iter(_zero_positions(data) + [8 * len(data)] * 2)
    next_zero, start, indices = next(zeros), 0, []
    for _ in range(dimension):
      magnitude, end = next_zero - start, next_zero + 1
      next_zero = next(zeros, None)
      if magnitude:
        is_minus = next_zero != end
        if not is_minus:
          next_zero = next(zeros, None)
        magnitude, end = (-magnitude if is_minus else magnitude), end + 1
      if next_zero is None or end > 8 * len(data):
        raise DecodingError(
            f'The message is cut short: its {len(data)} bytes hold '
            f'{len(indices)} of {dimension} integers.'
        )
      indices.append(magnitude)
      start = end
    last = bit_strings.unpack(data[start // 8 : start // 8 + 2])[start % 8 :]
    bit_strings.check_filling(start, last.tobytes())
    return checked_range(np.array(indices, np.int64))


class FixedWidthCode(Code):
  """A sign bit and ceil(log2(s + 1)) bits for the magnitude, at most s.

  With `signed=False` for integers 0, ..., s, without the sign bit.
  """

  def __init__(self, max_index: int, *, signed: bool = True):
    """Makes a code.

    Args:
      max_index: s, a whole number from 1 to 2^31 - 1.
      signed: Whether integers may be negative.

    Raises:
      ValueError: If `max_index` is out of its range.
    """
    arguments.check_count('max_index', max_index)
    if max_index > quantizers.MAX_INDEX:
      raise ValueError(
          f'max_index must be at most {quantizers.MAX_INDEX}, found '
          f'{max_index}.'
      )
    self._max_index = int(max_index)
    self._signed = signed
    self._width = self._max_index.bit_length()

  def index_range(self) -> tuple[int, int]:
    return (-self._max_index if self._signed else 0), self._max_index

  def length(self, indices: tf.Tensor) -> tf.Tensor:
    return tf.size(indices, tf.int64) * (self._width + self._signed)

  def _encode(self, indices):
    numbers = np.abs(indices)
    if self._signed:
      numbers |= (indices < 0).astype(np.int64) << self._width
    widths = np.full(len(indices), self._width + self._signed)
    return bit_strings.pack(numbers, widths)

  def decode(self, data: bytes, dimension: int) -> np.ndarray:
    width = self._width + self._signed
    bits, size = bit_strings.unpack(data), width * dimension
    if len(bits) < size:
      raise DecodingError(
          f'The message is cut short: it has {len(bits)} bits, where {size} '
          'are needed.'
      )
    bit_strings.check_filling(size, bits[size : size + 8].tobytes())
    digits = bits[:size].reshape([dimension, width]).astype(np.int64)
    numbers = digits @ (1 << np.arange(width, dtype=np.int64)[::-1])
    magnitudes = numbers & ((1 << self._width) - 1)
    is_minus = numbers != magnitudes
    if np.any(magnitudes > self._max_index) or np.any(is_minus > magnitudes):
      raise DecodingError(
          'The message is corrupted: it has an integer that is minus zero, or '
          f'above {self._max_index}.'
      )
    return np.where(is_minus, -magnitudes, magnitudes)


def fits(code: Code, indices: tf.Tensor) -> tf.Tensor:
  """Returns whether the code can carry all integers, a bool scalar."""
  low, high = code.index_range()
  return tf.reduce_all((indices >= low) & (indices <= high))


def checked_range(indices: np.ndarray) -> np.ndarray:
  """Returns `indices`; raises DecodingError if a magnitude is 2^31 or more."""
  if np.any(np.abs(indices) > quantizers.MAX_INDEX):
    raise DecodingError(
        'The message is corrupted: it has an integer of magnitude above '
        f'{quantizers.MAX_INDEX}.'
    )
  return indices


def _starts(widths: np.ndarray) -> np.ndarray:
  """Returns where each number starts, and where the last one ends."""
  return np.concatenate([[0], np.cumsum(widths)])


def _zero_positions(data: bytes) -> list[int]:
  """Returns the positions of the bits that are 0."""
  values = np.frombuffer(data, np.uint8)
  places = np.flatnonzero(values != 0xFF)
  zeros = np.flatnonzero(np.unpackbits(values[places]) == 0)
  return (8 * places[zeros >> 3] + (zeros & 7)).tolist()
