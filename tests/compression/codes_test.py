"""Signed unary and fixed width: exact values, round trips, corruption."""

import numpy as np
import pytest
import tensorflow as tf

from tests.compression import code_cases
from tff_localupdate.compression import codes

CODES = {
    'unary': codes.SignedUnaryCode(),
    'fixed': codes.FixedWidthCode(3),
    'unsigned': codes.FixedWidthCode(1000, signed=False),
}
INDICES = np.array([0, 1, -1, 3, -2])


@pytest.mark.parametrize('check', code_cases.ALL)
@pytest.mark.parametrize('name', CODES)
def test_code(name, check):
  check(CODES[name])


@pytest.mark.parametrize(
    'code', [codes.SignedUnaryCode(), codes.FixedWidthCode(2**31 - 1)]
)
def test_largest_magnitudes(code):
  code_cases.check_extremes(code)


def test_group_8_unary():
  code = codes.SignedUnaryCode()
  data = code.encode(INDICES)
  assert code_cases.bits_of(data) == '0100101111001101'
  lengths = [int(code.length(tf.constant([k], tf.int64))) for k in INDICES]
  assert lengths == [1, 3, 3, 5, 4]
  assert int(code.length(tf.constant(INDICES))) == 16
  np.testing.assert_array_equal(code.decode(data, 5), INDICES)


def test_fixed_width_bits():
  code = codes.FixedWidthCode(3)
  assert code_cases.bits_of(code.encode(INDICES)) == (
      '000' '001' '101' '011' '110' '0'
  )
  for levels, width in ((1, 1), (3, 2), (4, 3), (5, 3), (7, 3), (8, 4)):
    length = codes.FixedWidthCode(levels).length(tf.zeros([1], tf.int64))
    assert int(length) == 1 + width == 1 + int(np.ceil(np.log2(levels + 1)))


@pytest.mark.parametrize('bits', ['10000000', '01100000'])
def test_fixed_width_refuses_minus_zero_and_large_magnitudes(bits):
  code = codes.FixedWidthCode(2)
  with pytest.raises(codes.DecodingError, match='minus zero, or above 2'):
    code.decode(bytes([int(bits, 2)]), 2)


def test_lengths_are_the_same_under_xla_and_int64():
  for code in CODES.values():
    length = tf.function(code.length, jit_compile=True)
    indices = tf.constant([0, 1, 2, 3, 0, 0], tf.int64)
    assert length(indices).dtype == tf.int64
    assert int(length(indices)) == int(code.length(indices))


@pytest.mark.parametrize('max_index', [0, -1, 2**31, 1.5])
def test_wrong_levels_are_refused(max_index):
  with pytest.raises(ValueError, match='max_index must be .*, found'):
    codes.FixedWidthCode(max_index)
