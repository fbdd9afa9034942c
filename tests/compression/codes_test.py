"""Codes: exact values, round trips, corruption, and the bits beneath them."""

import numpy as np
import pytest
import tensorflow as tf

from tff_localupdate.compression import codes

DIMENSIONS = (1, 2, 5, 17, 64)
ELIAS = {
    'gamma': codes.EliasGammaCode(),
    'run_length': codes.RunLengthCode(),
}
CODES = {
    'unary': codes.SignedUnaryCode(),
    'fixed': codes.FixedWidthCode(3),
    'widest': codes.FixedWidthCode(2**31 - 1),
    'unsigned': codes.FixedWidthCode(1000, signed=False),
    **ELIAS,
}
# Those that can carry the largest magnitudes.
UNBOUNDED = ('unary', 'widest', *ELIAS)
INDICES = np.array([0, 1, -1, 3, -2])


def bits_of(data):
  """Returns the bits of `data` as text."""
  return ''.join(f'{byte:08b}' for byte in data)


def random_vectors(code, count):
  """Yields vectors of many magnitudes and densities, in range of the code."""
  rng = np.random.default_rng(1)
  low, high = code.index_range()
  for i in range(count):
    dimension = 7840 if i % 100 == 0 else DIMENSIONS[i % len(DIMENSIONS)]
    scale = 10.0 ** rng.uniform(-1.0, 3.0 if dimension < 7840 else 1.0)
    vector = np.round(scale * rng.standard_cauchy(dimension))
    vector *= rng.random(dimension) < rng.random()
    limit = 1e5 if dimension < 7840 else 1e3
    yield np.clip(vector, max(low, -limit), min(high, limit)).astype(np.int64)


@pytest.mark.parametrize('name', CODES)
def test_round_trips(name):
  """Checks that vectors come back, in as many bits as `length` says."""
  code = CODES[name]
  length = tf.function(code.length)
  zeros = [np.zeros([d], np.int64) for d in (0, 1, 7840)]
  for vector in [*random_vectors(code, 1000), *zeros]:
    data = code.encode(vector)
    np.testing.assert_array_equal(code.decode(data, len(vector)), vector)
    num_bits = int(length(tf.constant(vector)))
    assert len(data) == -(-num_bits // 8)
    assert '1' not in bits_of(data)[num_bits:]


@pytest.mark.parametrize('name', UNBOUNDED)
def test_largest_magnitudes(name):
  """Checks the largest magnitudes, alone and among others."""
  code = CODES[name]
  for vector in ([1], [-1], [0, 1, 0], [-1, 0, 1]):
    vector = np.array(vector, np.int64) * (2**31 - 1)
    data = code.encode(vector)
    np.testing.assert_array_equal(code.decode(data, len(vector)), vector)
    assert len(data) == -(-int(code.length(tf.constant(vector))) // 8)


@pytest.mark.parametrize('name', CODES)
def test_corruption_is_refused(name):
  """Checks that what is no message is refused, and only that.

  Bytes that are accepted must be those that `encode` makes of the result.
  """
  code = CODES[name]
  vector = next(random_vectors(code, 1))[:50]
  data = code.encode(vector)
  for end in range(len(data)):
    with pytest.raises(codes.DecodingError):
      code.decode(data[:end], 50)
  with pytest.raises(codes.DecodingError, match='too long'):
    code.decode(data + b'\x00', 50)
  with pytest.raises(codes.DecodingError):
    code.decode(data, 5000)
  rng, refused = np.random.default_rng(2), 0
  for i in range(1000):
    if i % 2:
      changed = rng.bytes(rng.integers(1, 40))
    else:
      changed = bytearray(data)
      changed[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
      changed = bytes(changed)
    try:
      found = code.decode(changed, 50)
    except codes.DecodingError:
      refused += 1
    else:
      assert code.encode(found) == changed
  assert refused > 300


@pytest.mark.parametrize('name', CODES)
def test_integers_out_of_range_are_refused(name):
  """Checks that integers out of range are refused, and told by `fits`."""
  code = CODES[name]
  low, high = code.index_range()
  for wrong in (low - 1, high + 1):
    with pytest.raises(ValueError, match=f'from {low} to {high} .* {wrong}'):
      code.encode(np.array([0, wrong]))
    assert not codes.fits(code, tf.constant([0, wrong], tf.int64))
  assert codes.fits(code, tf.constant([low, high], tf.int64))


@pytest.mark.parametrize('name', CODES)
def test_lengths_are_the_same_under_xla_and_int64(name):
  code = CODES[name]
  length = tf.function(code.length, jit_compile=True)
  for indices in ([0, 1, 2, 3, 0, 0], [0, 5, -2, 0, 0, 1, 0], [0] * 7, [3] * 7):
    indices = tf.constant(indices, tf.int64)
    assert length(indices).dtype == tf.int64
    assert int(length(indices)) == int(code.length(indices))


def test_group_8_unary():
  code = codes.SignedUnaryCode()
  data = code.encode(INDICES)
  assert bits_of(data) == '0100101111001101'
  lengths = [int(code.length(tf.constant([k], tf.int64))) for k in INDICES]
  assert lengths == [1, 3, 3, 5, 4]
  assert int(code.length(tf.constant(INDICES))) == 16
  np.testing.assert_array_equal(code.decode(data, 5), INDICES)


def test_fixed_width_bits():
  code = codes.FixedWidthCode(3)
  assert bits_of(code.encode(INDICES)) == (
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


@pytest.mark.parametrize('max_index', [0, -1, 2**31, 1.5])
def test_wrong_levels_are_refused(max_index):
  with pytest.raises(ValueError, match='max_index must be .*, found'):
    codes.FixedWidthCode(max_index)


def test_group_8_elias_gamma():
  code = codes.EliasGammaCode()
  lengths = [int(code.length(tf.constant([k], tf.int64))) for k in INDICES]
  assert lengths == [1, 3, 3, 5, 5]
  assert bits_of(code.encode(INDICES)) == (
      '1' '011' '010' '00111' '00100' '0000000'
  )


def test_run_length_bits():
  code = codes.RunLengthCode()
  # Distance, sign, magnitude of each; the last coordinate ends the message.
  assert bits_of(code.encode(INDICES)) == (
      '010' '0' '1' '1' '1' '1' '1' '0' '011' '1' '1' '010' '000000'
  )
  # The distance 3 to the place after the vector ends this one.
  assert bits_of(code.encode(np.array([2, 0, 0]))) == (
      '1' '0' '010' '011'
  )
  # All zero: only the distance d + 1.
  assert bits_of(code.encode(np.zeros([6], int))) == '00111' '000'


@pytest.mark.parametrize('name', ELIAS)
def test_length_at_powers_of_two(name):
  code = CODES[name]
  for power in range(31):
    for number in (2**power - 1, 2**power, 2**power + 1):
      indices = np.array([-min(number, 2**31 - 1)])
      length = int(code.length(tf.constant(indices)))
      assert len(code.encode(indices)) == -(-length // 8)


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


# Bits and bytes.


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
