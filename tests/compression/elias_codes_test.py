"""Elias gamma and run-length: exact values, round trips, corruption."""

import numpy as np
import pytest
import tensorflow as tf

from tests.compression import code_cases
from tff_localupdate.compression import codes

CODES = {
    'gamma': codes.EliasGammaCode(),
    'run_length': codes.RunLengthCode(),
}
INDICES = np.array([0, 1, -1, 3, -2])


@pytest.mark.parametrize(
    'check', [*code_cases.ALL, code_cases.check_extremes]
)
@pytest.mark.parametrize('name', CODES)
def test_code(name, check):
  check(CODES[name])


def test_group_8_elias_gamma():
  code = codes.EliasGammaCode()
  lengths = [int(code.length(tf.constant([k], tf.int64))) for k in INDICES]
  assert lengths == [1, 3, 3, 5, 5]
  assert code_cases.bits_of(code.encode(INDICES)) == (
      '1' '011' '010' '00111' '00100' '0000000'
  )


def test_run_length_bits():
  code = codes.RunLengthCode()
  # Distance, sign, magnitude of each; the last coordinate ends the message.
  assert code_cases.bits_of(code.encode(INDICES)) == (
      '010' '0' '1' '1' '1' '1' '1' '0' '011' '1' '1' '010' '000000'
  )
  # The distance 3 to the place after the vector ends this one.
  assert code_cases.bits_of(code.encode(np.array([2, 0, 0]))) == (
      '1' '0' '010' '011'
  )
  # All zero: only the distance d + 1.
  assert code_cases.bits_of(code.encode(np.zeros([6], int))) == '00111' '000'


@pytest.mark.parametrize('name', CODES)
def test_length_at_powers_of_two(name):
  code = CODES[name]
  for power in range(31):
    for number in (2**power - 1, 2**power, 2**power + 1):
      indices = np.array([-min(number, 2**31 - 1)])
      length = int(code.length(tf.constant(indices)))
      assert len(code.encode(indices)) == -(-length // 8)


@pytest.mark.parametrize('name', CODES)
def test_lengths_are_the_same_under_xla_and_int64(name):
  code = CODES[name]
  length = tf.function(code.length, jit_compile=True)
  for indices in ([0, 5, -2, 0, 0, 1, 0], [0] * 7, [3] * 7):
    indices = tf.constant(indices, tf.int64)
    assert length(indices).dtype == tf.int64
    assert int(length(indices)) == int(code.length(indices))


def test_run_length_refuses_places_after_the_vector():
  data = codes.RunLengthCode().encode(np.array([0, 0, 0, 1]))
  with pytest.raises(codes.DecodingError, match='at place 3 of 2'):
    codes.RunLengthCode().decode(data, 2)


def test_integers_of_32_bits_are_refused():
  # 2^32 - 1 is no index of the zigzag code, whose largest is 2^31 - 1.
  data = codes.pack(np.array([2**32 - 1]), np.array([63]))
  assert codes.EliasGammaCode().decode(data, 1) == [2**31 - 1]
  data = codes.pack(
      np.array([1, 0, 2**31]), np.array([1, 1, 63])
  )
  with pytest.raises(codes.DecodingError, match='magnitude above 2147483647'):
    codes.RunLengthCode().decode(data, 1)
