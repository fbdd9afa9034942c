"""Whole numbers of given widths to bytes, and a reader of single bits.

The first bit is the highest one of the first byte. The last byte is filled up
with zeros.
"""

import numpy as np

# The number of zeros before the leading one of a number below 2^32.
_MAX_GAMMA_ZEROS = 31


class DecodingError(ValueError):
  """The bytes are no message: cut short, too long or corrupted."""


def pack(values: np.ndarray, widths: np.ndarray) -> bytes:
  """Writes numbers one after another, the highest bit of each first.

  Args:
    values: int64 [n], not negative.
    widths: int64 [n], the number of bits of each, at most 63; leading zeros
      fill up.

  Returns:
    The bytes.
  """
  ends = np.cumsum(widths)
  total = int(ends[-1]) if len(ends) else 0
  # The number of bits that follow each bit within its number.
  following = np.repeat(ends, widths) - np.arange(1, total + 1)
  bits = (np.repeat(values, widths) >> following) & 1
  return np.packbits(bits.astype(np.uint8)).tobytes()


def unpack(data: bytes) -> np.ndarray:
  """Returns the bits of `data`, uint8 [8 len(data)]."""
  return np.unpackbits(np.frombuffer(data, np.uint8))


class BitReader:
  """Reads numbers of unknown widths from bytes, from the front."""

  def __init__(self, data: bytes):
    # Text, because its `find` is the fastest search for the next one.
    self._text = (unpack(data) + ord('0')).tobytes().decode('ascii')
    self._position = 0

  def read_bit(self) -> int:
    """Returns the next bit.

    Raises:
      DecodingError: If there is none.
    """
    return self._read(1)

  def read_gamma(self) -> int:
    """Returns the next number >= 1 in the Elias gamma code.

    Raises:
      DecodingError: If there is none, or it is not below 2^32.
    """
    one = self._text.find('1', self._position)
    zeros = (one if one >= 0 else len(self._text)) - self._position
    if zeros > _MAX_GAMMA_ZEROS:
      raise DecodingError(
          f'At bit {self._position} there is no number below 2^32.'
      )
    self._position += zeros
    return self._read(zeros + 1)

  def finish(self) -> None:
    """Checks that nothing is left.

    Raises:
      DecodingError: If there is, beyond the zeros that fill the last byte.
    """
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
  """Checks that what follows the last bit that counts fills its byte only.

  Args:
    num_read: The number of bits that count.
    rest: Those after them, one per byte, each 0 or 1 in its lowest bit.

  Raises:
    DecodingError: If there are 8 or more, or one of them is not 0.
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
