"""Packing of numbers into bits, and reading them back."""

import numpy as np
import pytest

from tff_localupdate.compression import codes


def test_pack_writes_highest_bit_first_and_fills_up_with_zeros():
  data = codes.pack(np.array([1, 5, 0, 3]), np.array([1, 4, 2, 2]))
  assert ''.join(map(str, codes.unpack(data))) == '1' '0101' '00' '11' + (
      '0000000'
  )
  assert codes.pack(np.array([], int), np.array([], int)) == b''


def test_widest_number():
  data = codes.pack(np.array([2**32 - 1]), np.array([63]))
  assert codes.BitReader(data).read_gamma() == 2**32 - 1


def test_reader_reads_what_was_written():
  numbers = [1, 2, 3, 4, 1000, 2**31]
  widths = [2 * n.bit_length() - 1 for n in numbers]
  data = codes.pack(np.array(numbers + [1]), np.array(widths + [1]))
  reader = codes.BitReader(data)
  assert [reader.read_gamma() for _ in numbers] == numbers
  assert reader.read_bit() == 1
  reader.finish()


@pytest.mark.parametrize(
    'data, message',
    [
        (b'', 'cut short: it has 0 bits, where at least 1'),
        (b'\x00', 'cut short: it has 8 bits, where at least 17'),
        (b'\x01', 'cut short: it has 8 bits, where at least 15'),
        (b'\x00\x00\x00\x00\x80', 'no number below 2.32'),
    ],
)
def test_no_number(data, message):
  with pytest.raises(codes.DecodingError, match=message):
    codes.BitReader(data).read_gamma()


@pytest.mark.parametrize(
    'data, message',
    [(b'\x80\x00', 'too long: whole bytes follow the 1 bits'),
     (b'\x81', 'not filled up with zeros')],
)
def test_something_is_left(data, message):
  reader = codes.BitReader(data)
  reader.read_bit()
  with pytest.raises(codes.DecodingError, match=message):
    reader.finish()
