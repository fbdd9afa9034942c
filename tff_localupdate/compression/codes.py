"""Codes: from vectors of integers to bytes and back, and exact lengths.

Each code has two faces. `encode` and `decode` are NumPy on the host and handle
real bytes. `length` is TensorFlow and compiles under XLA, so that a TFF process
can count the bits of a message that it does not have to build. The tests hold
one against the other.

Both sides know the dimension d. Codes are canonical: bytes that `decode`
accepts are those that `encode` makes of the result. Without a checksum, which
no paper here counts, a flipped bit can give the message of another vector.

To add a code, write a `Code`. Two are made of Elias gamma numbers: n >= 1 is
sent as floor(log2 n) zeros and then n in binary, which is 2 floor(log2 n) + 1
bits. Elias, Universal Codeword Sets and Representations of the Integers, 1975.
"""

import abc

import numpy as np
import tensorflow as tf

from tff_localupdate import arguments
from tff_localupdate.compression import quantizers

# The number of zeros before the leading one of a number below 2^32.
_MAX_GAMMA_ZEROS = 31


class DecodingError(ValueError):
  """The bytes are no message: cut short, too long or corrupted."""


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

    Raises ValueError if an integer is out of the range of the code.
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


def fits(code: Code, indices: tf.Tensor) -> tf.Tensor:
  """Returns whether the code can carry all integers, a bool scalar."""
  low, high = code.index_range()
  return tf.reduce_all((indices >= low) & (indices <= high))


class SignedUnaryCode(Code):
  """|k| ones, one zero, then a sign bit if k is not 0 (0 plus, 1 minus).

  The length of one integer is |k| + 1 + [k != 0]. The code of CEAL here.
  """

  def length(self, indices: tf.Tensor) -> tf.Tensor:
    signs = tf.cast(tf.not_equal(indices, 0), tf.int64)
    return tf.reduce_sum(tf.abs(indices) + 1 + signs)

  def _encode(self, indices):
    # All ones, but for the zero that ends each magnitude, the sign bit after it
    # if it is plus, and the filling. The work is in proportion to the zeros: a
    # long run of ones costs nothing per bit.
    magnitudes, nonzero = np.abs(indices), indices != 0
    starts = np.concatenate([[0], np.cumsum(magnitudes + 1 + nonzero)])
    zeros = starts[:-1] + magnitudes
    plus = zeros[indices > 0] + 1
    data = np.full(-(-int(starts[-1]) // 8), 0xFF, np.uint8)
    filling = np.arange(starts[-1], 8 * len(data))
    positions = np.concatenate([zeros, plus, filling])
    np.bitwise_and.at(
        data, positions >> 3, ~(128 >> (positions & 7)).astype(np.uint8)
    )
    return data.tobytes()

  def decode(self, data: bytes, dimension: int) -> np.ndarray:
    # From one zero to the next: the ones between are a magnitude. After one
    # that is not 0 comes its sign, which is plus if the very next bit is a
    # zero. Two zeros behind the end are put there for the loop to find, and
    # then to miss.
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
    last = unpack(data[start // 8 : start // 8 + 2])[start % 8 :]
    check_filling(start, last.tobytes())
    return checked_range(np.array(indices, np.int64))


def _zero_positions(data: bytes) -> list[int]:
  values = np.frombuffer(data, np.uint8)
  places = np.flatnonzero(values != 0xFF)
  zeros = np.flatnonzero(np.unpackbits(values[places]) == 0)
  return (8 * places[zeros >> 3] + (zeros & 7)).tolist()


class FixedWidthCode(Code):
  """A sign bit and ceil(log2(s + 1)) bits for the magnitude, at most s.

  With `signed=False` for integers 0, ..., s, without the sign bit.
  """

  def __init__(self, max_index: int, *, signed: bool = True):
    """Makes a code for magnitudes up to s, `max_index`, from 1 to 2^31 - 1."""
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
    return pack(numbers, widths)

  def decode(self, data: bytes, dimension: int) -> np.ndarray:
    width = self._width + self._signed
    bits, size = unpack(data), width * dimension
    if len(bits) < size:
      raise DecodingError(
          f'The message is cut short: it has {len(bits)} bits, where {size} '
          'are needed.'
      )
    check_filling(size, bits[size : size + 8].tobytes())
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


class EliasGammaCode(Code):
  """The gamma code of 1 + zigzag(k): 0, -1, 1, -2, 2 -> 1, 2, 3, 4, 5."""

  def length(self, indices: tf.Tensor) -> tf.Tensor:
    numbers = 2 * tf.abs(indices) + tf.cast(indices >= 0, tf.int64)
    return tf.reduce_sum(_gamma_length(numbers))

  def _encode(self, indices):
    numbers = 2 * np.abs(indices) + (indices >= 0)
    return pack(numbers, _gamma_width(numbers))

  def decode(self, data: bytes, dimension: int) -> np.ndarray:
    reader = BitReader(data)
    numbers = np.array(
        [reader.read_gamma() for _ in range(dimension)], np.int64
    )
    reader.finish()
    halves = numbers >> 1
    return checked_range(np.where(numbers & 1, halves, -halves))


class RunLengthCode(Code):
  """For each k that is not 0, its distance from the last one, sign and |k|.

  Distance and magnitude in the Elias gamma code, between them one sign bit (0
  plus, 1 minus). The first distance is from the place before the vector. Unless
  the last coordinate is not 0, the distance to the place after the vector ends
  the message. So zeros cost next to nothing.

  Source: Alistarh et al., QSGD, NIPS 2017, section 3.1.

  Departures: they use Elias' omega code, and do not say how a message ends.
  """

  def length(self, indices: tf.Tensor) -> tf.Tensor:
    # The place of the last nonzero before i is a running maximum of places: so
    # all distances come at once, without a loop over the coordinates.
    dimension = indices.shape[0]
    places = tf.range(dimension, dtype=tf.int64)
    nonzero = tf.not_equal(indices, 0)
    last = _running_maximum(tf.where(nonzero, places, -1))
    previous = tf.concat([tf.constant([-1], tf.int64), last], axis=0)
    each = (
        _gamma_length(places - previous[:-1])
        + 1
        + _gamma_length(tf.maximum(tf.abs(indices), 1))
    )
    rest = dimension - previous[-1]
    end = tf.where(rest > 1, _gamma_length(rest), 0)
    return tf.reduce_sum(tf.where(nonzero, each, 0)) + end

  def _encode(self, indices):
    places = np.flatnonzero(indices)
    distances = np.diff(places, prepend=-1)
    found = indices[places]
    numbers = np.stack([distances, found < 0, np.abs(found)], axis=1)
    widths = np.stack(
        [_gamma_width(distances), np.ones_like(found), _gamma_width(found)],
        axis=1,
    )
    rest = len(indices) - (places[-1] if len(places) else -1)
    end = np.array([rest] if rest > 1 else [], np.int64)
    return pack(
        np.concatenate([numbers.ravel(), end]),
        np.concatenate([widths.ravel(), _gamma_width(end)]),
    )

  def decode(self, data: bytes, dimension: int) -> np.ndarray:
    reader = BitReader(data)
    indices, place = np.zeros(dimension, np.int64), -1
    while place < dimension - 1:
      place += reader.read_gamma()
      if place > dimension:
        raise DecodingError(
            f'The message is corrupted: it has an integer at place {place} of '
            f'{dimension}.'
        )
      if place < dimension:
        sign = -1 if reader.read_bit() else 1
        indices[place] = sign * reader.read_gamma()
    reader.finish()
    return checked_range(indices)


def _gamma_width(numbers: np.ndarray) -> np.ndarray:
  """Returns 2 floor(log2 |n|) + 1 for n of magnitudes from 1 to 2^32 - 1."""
  # frexp gives n = m 2^e with 1/2 <= m < 1, so floor(log2 n) = e - 1.
  _, exponents = np.frexp(np.abs(numbers).astype(np.float64))
  return 2 * exponents.astype(np.int64) - 1


def _gamma_length(numbers: tf.Tensor) -> tf.Tensor:
  """Returns 2 floor(log2 n) + 1 for n from 1 to 2^53, int64."""
  # The exponent of a float64, bits 52 to 62, biased by 1023; logarithms are not
  # exact.
  bits = tf.bitcast(tf.cast(numbers, tf.float64), tf.int64)
  exponents = tf.bitwise.right_shift(bits, tf.constant(52, tf.int64)) - 1023
  return 2 * exponents + 1


def _running_maximum(values: tf.Tensor) -> tf.Tensor:
  """Returns the maxima of values[: i + 1], in log2(d) steps that XLA takes."""
  # After the step of distance 2^j each place has the maximum of the 2^{j+1}
  # values that end there.
  distance = 1
  while distance < values.shape[0]:
    shifted = tf.concat([values[:distance], values[:-distance]], axis=0)
    values = tf.maximum(values, shifted)
    distance *= 2
  return values


def checked_range(indices: np.ndarray) -> np.ndarray:
  """Returns `indices`; raises DecodingError if a magnitude is 2^31 or more."""
  if np.any(np.abs(indices) > quantizers.MAX_INDEX):
    raise DecodingError(
        'The message is corrupted: it has an integer of magnitude above '
        f'{quantizers.MAX_INDEX}.'
    )
  return indices


# Bits and bytes: the first bit is the highest one of the first byte, and the
# last byte is filled up with zeros.


def pack(values: np.ndarray, widths: np.ndarray) -> bytes:
  """Writes numbers one after another, the highest bit of each first.

  Both are int64 [n]: `values`, not negative, and the number of bits of each, at
  most 63, which leading zeros fill up.
  """
  # Every bit of the message at once: bit j of a number is the number shifted
  # right by j, and j counts down from its width - 1 to 0.
  ends = np.cumsum(widths)
  total = int(ends[-1]) if len(ends) else 0
  following = np.repeat(ends, widths) - np.arange(1, total + 1)
  bits = (np.repeat(values, widths) >> following) & 1
  return np.packbits(bits.astype(np.uint8)).tobytes()


def unpack(data: bytes) -> np.ndarray:
  """Returns the bits of `data`, uint8 [8 len(data)]."""
  return np.unpackbits(np.frombuffer(data, np.uint8))


class BitReader:
  """Reads numbers of unknown widths from bytes, from the front.

  Methods raise DecodingError for bytes that `pack` has not made.
  """

  def __init__(self, data: bytes):
    # Text, because its `find` is the fastest search for the next one.
    self._text = (unpack(data) + ord('0')).tobytes().decode('ascii')
    self._position = 0

  def read_bit(self) -> int:
    """Returns the next bit."""
    return self._read(1)

  def read_gamma(self) -> int:
    """Returns the next number in the Elias gamma code, from 1 to 2^32 - 1."""
    # As many zeros as bits follow the leading one.
    one = self._text.find('1', self._position)
    zeros = (one if one >= 0 else len(self._text)) - self._position
    if zeros > _MAX_GAMMA_ZEROS:
      raise DecodingError(
          f'At bit {self._position} there is no number below 2^32.'
      )
    self._position += zeros
    return self._read(zeros + 1)

  def finish(self) -> None:
    """Checks that nothing is left but the zeros that fill the last byte."""
    check_filling(self._position, self._text[self._position :].encode())

  def _read(self, width):
    end = self._position + width
    if end > len(self._text):
      raise DecodingError(
          f'The message is cut short: it has {len(self._text)} bits, where at '
          f'least {end} are needed.'
      )
    value = int(self._text[self._position : end], 2)
    self._position = end
    return value


def check_filling(num_read: int, rest: bytes) -> None:
  """Raises DecodingError unless what follows the last bit fills its byte only.

  `rest` is what follows `num_read` bits that count: one per byte, each 0 or 1
  in its lowest bit.
  """
  if len(rest) >= 8:
    raise DecodingError(
        f'The message is too long: whole bytes follow the {num_read} bits that '
        'hold its integers.'
    )
  if any(bit & 1 for bit in rest):
    raise DecodingError(
        'The message is corrupted: its last byte is not filled up with zeros.'
    )
