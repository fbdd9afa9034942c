"""Codes have the names of the settings."""

import numpy as np
import pytest
import tensorflow as tf

from baselines.algorithms import driver
from baselines.settings import algorithms

# The lengths of k = (0, 1, -1, 3, -2): the specification, section 10.8, and
# 1 + ceil(log2(s + 1)) = 3 each for s = 3.
_INTEGERS = np.array([0, 1, -1, 3, -2])


@pytest.mark.parametrize('name, bits', [
    ('fixed_width', 15), ('signed_unary', 16), ('elias_gamma', 17),
])
def test_bits_of_a_message(name, bits):
  code = driver.build_code(name, 3)
  assert int(code.length(tf.constant(_INTEGERS))) == bits
  decoded = code.decode(code.encode(_INTEGERS), len(_INTEGERS))
  np.testing.assert_array_equal(decoded, _INTEGERS)


def test_unsigned_integers_need_no_bit_for_the_sign():
  code = driver.build_code('fixed_width', 3, signed=False)
  assert int(code.length(tf.constant(np.abs(_INTEGERS)))) == 10


@pytest.mark.parametrize('names', [
    algorithms.UNBOUNDED_CODES,
    (*algorithms.BOUNDED_CODES, *algorithms.UNBOUNDED_CODES),
])
def test_every_name_that_settings_offer_is_known(names):
  kinds = {type(driver.build_code(name, 5)) for name in names}
  assert len(kinds) == len(names)


def test_default_codes_of_the_quantizers_are_known():
  for entry in algorithms.QUANTIZERS.values():
    driver.build_code(entry.code, 5)
    assert (entry.code in algorithms.BOUNDED_CODES) == entry.takes_levels


def test_unknown_name_is_refused():
  with pytest.raises(ValueError, match="must be one of fixed_width.*'zip'"):
    driver.build_code('zip')
