"""Flat leaves and Python values: exact inverses, errors that name the place."""

import collections
from typing import Any, NamedTuple

import attr
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_localupdate.execution import values


class Pair(NamedTuple):
  first: Any
  second: Any


@attr.s
class Attributes:
  a = attr.ib()


NESTED = tff.to_type(Pair(
    collections.OrderedDict(x=np.int32, y=(np.float32, [2])),
    [np.str_, (np.bool_, np.float64)],
))
VALUE = Pair(
    collections.OrderedDict(x=3, y=np.array([1, 2], np.float32)),
    [b'text', (True, 0.5)],
)


def test_flatten_lists_leaves_in_the_order_of_the_type():
  leaves = values.Codec(NESTED).flatten(VALUE)
  assert [np.asarray(leaf).tolist() for leaf in leaves] == [
      3, [1.0, 2.0], b'text', True, 0.5]
  assert [leaf.dtype for leaf in leaves] == [
      np.int32, np.float32, object, bool, np.float64]


def test_pack_is_the_inverse_of_flatten():
  codec = values.Codec(NESTED)
  packed = codec.pack(codec.flatten(VALUE))
  assert type(packed) is Pair
  assert list(packed.first) == ['x', 'y']
  assert packed.second[1] == (True, 0.5)


@pytest.mark.parametrize('value', [
    {'second': 2.0, 'first': 1.0},
    tff.structure.Struct([('first', 1.0), ('second', 2.0)]),
    [1.0, 2.0],
    (tf.constant(1.0), np.float32(2)),
    collections.namedtuple('Other', ['second', 'first'])(2.0, 1.0),
])
def test_any_container_with_the_fields_will_do(value):
  codec = values.Codec(tff.to_type(Pair(np.float32, np.float32)))
  assert [float(leaf) for leaf in codec.flatten(value)] == [1.0, 2.0]


def test_attrs_classes_are_built_again():
  codec = values.Codec(tff.to_type(Attributes(np.float32)))
  packed = codec.pack(codec.flatten(Attributes(1.5)))
  assert isinstance(packed, Attributes) and packed.a == 1.5


@pytest.mark.parametrize('value, message', [
    (VALUE._replace(first={'x': 3}), r"state\.first: expected fields"),
    (VALUE._replace(first={'x': 3, 'z': 1}), r"state\.first: expected fields"),
    (VALUE._replace(second=[b'']), r'state\.second: expected fields'),
    (VALUE._replace(second=3), r'state\.second: expected a structure'),
    (VALUE._replace(first={'x': 3.5, 'y': [1, 2]}),
     r'state\.first\.x: 3\.5 is no int32'),
    (VALUE._replace(first={'x': 3, 'y': [1, 2, 3]}),
     r'state\.first\.y: expected shape \(2,\), got \(3,\)'),
    (VALUE._replace(first={'x': tf.constant(3.0), 'y': [1, 2]}),
     r'state\.first\.x: expected dtype int32, got float32'),
    (VALUE._replace(first={'x': np.float32(3), 'y': [1, 2]}),
     r'state\.first\.x: expected dtype int32, got float32'),
])
def test_errors_name_the_place(value, message):
  with pytest.raises(TypeError, match=message):
    values.Codec(NESTED, 'state').flatten(value)


def test_integers_must_not_wrap():
  codec = values.Codec(tff.TensorType(np.int32))
  with pytest.raises(TypeError, match='is no int32'):
    codec.flatten(2**40)


def test_sequences_are_variants_and_come_back():
  codec = values.Codec(tff.SequenceType(np.int64))
  variant, = codec.flatten(tf.data.Dataset.range(3))
  assert variant.dtype == tf.variant
  again = values.to_numpy(variant, codec.leaf_types[0])
  assert [int(item) for item in again] == [0, 1, 2]
  with pytest.raises(TypeError, match='expected a tf.data.Dataset'):
    codec.flatten(3)


def test_nothing_has_no_leaves():
  codec = values.Codec(None)
  assert codec.flatten(None) == [] and codec.leaf_types == []
  empty = values.Codec(tff.to_type(collections.OrderedDict()))
  assert empty.flatten(()) == []


def test_num_elements_counts_open_sizes_once_and_no_sequences():
  found = values.num_elements(values.leaf_types(tff.to_type((
      (np.float32, [3, 4]), np.int32, (np.float32, [None, 5]),
      tff.SequenceType(np.float32),
  ))))
  assert found == 12 + 1 + 5


@pytest.mark.parametrize('value', [
    b'x\x00\x00', [b'x\x00', b'\x00'], 'x\x00',
    np.array([b'x\x00'], object),
])
def test_strings_keep_all_their_bytes(value):
  shape = np.shape(value)
  (leaf,) = values.Codec(tff.TensorType(np.str_, shape)).flatten(value)
  found = tf.convert_to_tensor(leaf).numpy()
  expected = np.vectorize(
      lambda text: text if isinstance(text, bytes) else text.encode(),
      otypes=[object],
  )(np.array(value, object))
  assert np.all(np.array(found, object) == expected)


@pytest.mark.parametrize('dtype, value', [
    (np.bool_, 0.5), (np.bool_, [True, 2]), (np.float32, np.float64(1e300)),
    (np.float32, 1e300), (np.float16, [1.0, 1e9]), (np.str_, 3),
    (np.str_, np.array([1])),
])
def test_numbers_are_not_changed(dtype, value):
  codec = values.Codec(tff.TensorType(dtype, np.shape(value)), 'here')
  with pytest.raises(TypeError, match='here: .* is no '):
    codec.flatten(value)


def test_numbers_may_be_rounded_and_need_not_be_finite():
  codec = values.Codec(tff.TensorType(np.float32, [4]))
  (leaf,) = codec.flatten([0.1, float('inf'), float('nan'), 1])
  np.testing.assert_array_equal(leaf, np.float32([0.1, np.inf, np.nan, 1]))
  (leaf,) = values.Codec(tff.TensorType(np.bool_)).flatten(1)
  assert leaf.dtype == np.bool_ and leaf
