"""Messages: vectors, bits of each kind, bytes and back, what cannot be sent."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_localupdate.compression import codes
from tff_localupdate.compression import messages
from tff_localupdate.compression import quantizers
from tff_localupdate.compression import random_seeds


def test_unflatten_inverts_flatten():
  structure = {
      'a': tf.constant([[1.0, 2.0], [3.0, 4.0]]),
      'b': [tf.constant(5.0), tf.constant([6.0])],
  }
  vector = messages.flatten(structure)
  np.testing.assert_array_equal(vector, [1, 2, 3, 4, 5, 6])
  back = messages.unflatten(vector, structure)
  tf.nest.map_structure(np.testing.assert_array_equal, back, structure)


def test_group_9_clip():
  vector = tf.constant([3.0, 4.0], tf.float64)

  def clip(v, radius):
    return messages.clip(v, tf.constant(radius, tf.float64))

  np.testing.assert_allclose(clip(vector, 2.5), [1.5, 2.0], rtol=1e-15)
  np.testing.assert_array_equal(clip(vector, 10.0), [3.0, 4.0])
  np.testing.assert_array_equal(clip(0.0 * vector, 2.5), [0.0, 0.0])
  np.testing.assert_array_equal(clip(vector, np.inf), [3.0, 4.0])


@pytest.mark.parametrize('entry', [np.nan, np.inf])
def test_clip_does_not_repair(entry):
  clipped = messages.clip(tf.constant([entry, 1.0]), tf.constant(2.0))
  assert not np.all(np.isfinite(clipped))


def test_clip_of_a_norm_that_overflows_is_not_zero():
  clipped = messages.clip(tf.constant([3e19, 4e19]), tf.constant(1.0))
  assert np.all(np.isnan(clipped))


def test_types_that_are_vectors():
  messages.check_value_type('v', tff.TensorType(np.float32, [3]))
  messages.check_value_type('v', tff.TensorType(np.float64))
  messages.check_value_type(
      'v', tff.to_type([tff.TensorType(np.float32, [3]), (np.float32,)])
  )


@pytest.mark.parametrize(
    'value_type, error, message',
    [
        (tff.TensorType(np.int32, [3]), ValueError, 'found 3 .* int32'),
        (tff.to_type([np.float32, np.float64]), ValueError, 'found 2 entries'),
        (tff.TensorType(np.float32, [0]), ValueError, 'found 0 entries'),
        (tff.TensorType(np.float32, [None]), TypeError, 'fixed shapes'),
        (tff.SequenceType(np.float32), TypeError, 'fixed shapes'),
        (tff.to_type([]), ValueError, 'found 0 entries of dtype none'),
    ],
)
def test_types_that_are_not(value_type, error, message):
  with pytest.raises(error, match=message):
    messages.check_value_type('value_type', value_type)


SEED = random_seeds.derive_seed(2)


def _vector(dimension, dtype=tf.float32):
  return tf.constant(np.random.default_rng(0).normal(size=dimension), dtype)


@pytest.mark.parametrize(
    'dimension, levels, bits', [(30, 3, 122), (7840, 5, 31392)]
)
def test_group_11_qsgd_bits(dimension, levels, bits):
  sent = messages.transmit(
      _vector(dimension),
      levels,
      SEED,
      quantizers.QsgdQuantizer(),
      codes.FixedWidthCode(levels),
  )
  assert int(sent.bits) == bits and sent.bits.dtype == tf.int64


def test_group_11_float_message_bits():
  floats = quantizers.QuantizedVector(tf.zeros([0], tf.int64), _vector(30))
  assert int(messages.count_bits(floats, codes.SignedUnaryCode())) == 960


def test_floats_of_a_float64_header_take_64_bits():
  sent = messages.transmit(
      _vector(30, tf.float64),
      3,
      SEED,
      quantizers.QsgdQuantizer(),
      codes.FixedWidthCode(3),
  )
  assert int(sent.bits) == 122 + 32


@pytest.mark.parametrize('dtype', ['float32', 'float64'])
@pytest.mark.parametrize(
    'quantizer, resolution, code, num_header',
    [
        (quantizers.GridQuantizer(), 0.8, codes.SignedUnaryCode(), 0),
        (quantizers.QsgdQuantizer(), 5, codes.FixedWidthCode(5), 1),
        (quantizers.QsgdQuantizer(), 5, codes.RunLengthCode(), 1),
        (quantizers.UniformQuantizer(), 7, codes.EliasGammaCode(), 2),
    ],
)
def test_decoded_bytes_are_the_vector_that_arrives(
    quantizer, resolution, code, num_header, dtype
):
  vector = _vector(77, tf.as_dtype(dtype))
  sent = messages.transmit(vector, resolution, SEED, quantizer, code)
  quantized = quantizer.quantize(vector, resolution, SEED)
  data = messages.encode(quantized, code)
  assert len(data) == -(-int(sent.bits) // 8)
  found = messages.decode(
      data, code, num_indices=77, num_header=num_header, dtype=dtype
  )
  decoded = quantizer.dequantize(
      quantizers.QuantizedVector(*map(tf.constant, found)), resolution
  )
  np.testing.assert_array_equal(decoded, sent.vector)
  assert sent.was_sent


def test_header_is_big_endian():
  quantized = quantizers.QuantizedVector(
      np.array([0]), np.array([1.0], np.float32)
  )
  data = messages.encode(quantized, codes.SignedUnaryCode())
  assert data == b'\x3f\x80\x00\x00' b'\x00'


@pytest.mark.parametrize(
    'quantizer, resolution, entry',
    [
        (quantizers.GridQuantizer(), 0.1, np.nan),
        (quantizers.GridQuantizer(), 0.1, -np.inf),
        (quantizers.GridQuantizer(), 0.1, 1e30),
        (quantizers.QsgdQuantizer(), 3, np.nan),
        (quantizers.QsgdQuantizer(), 3, np.inf),
        (quantizers.QsgdQuantizer(), 3, 3e19),  # Its square is not finite.
        (quantizers.UniformQuantizer(), 3, np.nan),
        (quantizers.UniformQuantizer(), 3, np.inf),
    ],
)
def test_what_cannot_be_sent_arrives_as_nan(quantizer, resolution, entry):
  vector = tf.constant([1.0, entry, 0.0])
  sent = messages.transmit(
      vector, resolution, SEED, quantizer, codes.SignedUnaryCode()
  )
  assert not sent.was_sent and int(sent.bits) == 0
  assert np.all(np.isnan(sent.vector))


def test_integers_out_of_the_range_of_the_code_cannot_be_sent():
  vector = tf.constant([1.0, -9.0])
  sent = messages.transmit(
      vector, 1.0, SEED, quantizers.GridQuantizer(), codes.FixedWidthCode(2)
  )
  assert not sent.was_sent and np.all(np.isnan(sent.vector))


def test_wrong_arguments():
  code = codes.SignedUnaryCode()
  with pytest.raises(codes.DecodingError, match='has 3 bytes, where'):
    messages.decode(b'abc', code, num_indices=1, num_header=1)
  with pytest.raises(ValueError, match='dtype must be one of'):
    messages.decode(b'', code, num_indices=0, dtype='float16')
