"""Python values to flat lists of tensors and back, directed by TFF types.

The functions made of TFF's graphs take and give flat lists of leaves; callers
hold NamedTuples, dicts, attrs classes, TFF's Structs. A TFF type says in which
order the leaves come (depth first, fields in the order of the type), which
dtypes and shapes they have, and which Python containers to build from results.

A type is walked once, when its `Codec` is made: each node becomes a closure
that handles its part of a value, and a round only runs the closures.
"""

import collections
from collections.abc import Callable, Iterator, Mapping
import math
from typing import Any, Optional

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

_MISSING = object()


class Codec:
  """Flattens and packs values of one type; `leaf_types` lists its leaves."""

  def __init__(self, type_spec: Optional[tff.Type], name: str = 'value'):
    """Prepares for one type; errors call the value `name`.

    The type is made of structures, tensors and sequences, any placement looked
    through; None has no leaves.
    """
    self.leaf_types = leaf_types(type_spec)
    self._name = name
    self._flatten = None if type_spec is None else _flattener(type_spec)
    self._pack = None if type_spec is None else _packer(type_spec)

  def flatten(self, value: Any, name: str = '') -> list[Any]:
    """Lists the leaves of `value`, one per leaf type; a dataset as a variant.

    It is made of NamedTuples, mappings, sequences, attrs classes or
    `tff.structure.Struct`s that match the type; leaves are tensors, arrays or
    numbers, and `tf.data.Dataset`s or lists for sequences. Raises TypeError if
    the structure, a dtype or a shape does not match.
    """
    leaves = []
    if self._flatten is not None:
      self._flatten(value, leaves, (name or self._name,))
    return leaves

  def pack(self, leaves: Iterator[Any]) -> Any:
    """Inverse of `flatten`: builds the Python containers named in the type."""
    return self._pack(iter(leaves)) if self._pack is not None else None


def leaf_types(type_spec: Optional[tff.Type]) -> list[tff.Type]:
  """Lists tensor and sequence types of `type_spec` in the order of leaves."""
  if type_spec is None:
    return []
  if isinstance(type_spec, tff.FederatedType):
    return leaf_types(type_spec.member)
  if isinstance(type_spec, tff.StructType):
    return [
        leaf for i in range(len(type_spec)) for leaf in leaf_types(type_spec[i])
    ]
  return [type_spec]


def num_elements(leaf_types: list[tff.Type]) -> int:
  """How many numbers tensors of these types hold at least."""
  shapes = [t.shape for t in leaf_types if isinstance(t, tff.TensorType)]
  return sum(math.prod(n or 1 for n in shape or ()) for shape in shapes)


def leaf_spec(type_spec: tff.Type) -> tf.TensorSpec:
  """TensorFlow's specification of one leaf."""
  if isinstance(type_spec, tff.SequenceType):
    return tf.TensorSpec([], tf.variant)
  return tf.TensorSpec(type_spec.shape, tf.as_dtype(type_spec.dtype))


def to_numpy(leaf: Any, type_spec: tff.Type) -> Any:
  """One result leaf as NumPy value, or as dataset for a sequence."""
  if isinstance(type_spec, tff.SequenceType):
    structure = tff.types.type_to_tf_tensor_specs(type_spec.element)
    return tf.data.experimental.from_variant(leaf, structure)
  return leaf.numpy() if isinstance(leaf, tf.Tensor) else leaf


# From values to leaves. A flattener takes (value, leaves, path), appends the
# value's leaves to the list, and names places by the tuple `path` in errors.


def _flattener(type_spec: tff.Type) -> Callable[[Any, list, tuple], None]:
  if isinstance(type_spec, tff.FederatedType):
    return _flattener(type_spec.member)
  if isinstance(type_spec, tff.StructType):
    return _struct_flattener(type_spec)
  if isinstance(type_spec, tff.SequenceType):
    return lambda value, leaves, path: leaves.append(
        _to_variant(value, type_spec, path)
    )
  if isinstance(type_spec, tff.TensorType):
    return _tensor_flattener(type_spec)
  raise TypeError(f'Values of TFF type {type_spec} are not supported.')


def _struct_flattener(type_spec):
  names = tff.structure.name_list_with_nones(type_spec)
  parts = [
      (str(index) if name is None else name, _flattener(type_spec[index]))
      for index, name in enumerate(names)
  ]
  container = _container(type_spec)
  # The container that the type itself names, with the fields in its order, as
  # our own states are, needs no look-up by name.
  in_order = tuple(names) == getattr(container, '_fields', None)

  def flatten(value, leaves, path):
    if in_order and type(value) is container:
      items = value
    else:
      items = _fields(value, names, path)
    for (name, part), item in zip(parts, items):
      part(item, leaves, path + (name,))

  return flatten


def _fields(value, names, path):
  """Lists the items of a structure in the order of `names`."""
  if value is None and not names:
    return []
  # By name where the value has names, else by position. `size` is how many
  # items there are, so that one too many is noticed as well.
  if isinstance(value, Mapping):
    items, size = [value.get(n, _MISSING) for n in names], len(value)
  elif hasattr(value, '_fields') or hasattr(value, '__attrs_attrs__'):
    fields = getattr(value, '_fields', None) or [
        a.name for a in value.__attrs_attrs__
    ]
    items, size = [getattr(value, n, _MISSING) for n in names], len(fields)
    if None in names and size == len(names):
      items = [getattr(value, field) for field in fields]
  elif isinstance(value, (tff.structure.Struct, tuple, list)):
    items, size = list(value), len(value)
  else:
    raise TypeError(
        f'{".".join(path)}: expected a structure with fields {names}, got '
        f'{type(value).__name__}.'
    )
  if size != len(names) or any(item is _MISSING for item in items):
    found = list(value) if isinstance(value, Mapping) else (
        list(getattr(value, '_fields', ())) or f'{size} items')
    raise TypeError(
        f'{".".join(path)}: expected fields {names}, got {found}.'
    )
  return items


def _tensor_flattener(type_spec):
  # All that can be said of the type is said here, outside of what runs for
  # every leaf of every client in every round.
  dtype = tf.as_dtype(type_spec.dtype)
  numpy_dtype = np.dtype(object if dtype == tf.string else type_spec.dtype)
  shape = tf.TensorShape(type_spec.shape)
  # Plain tuples: TensorFlow compares shapes far slower.
  sizes = None if shape.rank is None else tuple(shape.as_list())

  def flatten(value, leaves, path):
    if isinstance(value, tf.Tensor):
      found = value.dtype
    else:
      value = _to_array(value, numpy_dtype, path)
      found = dtype
    if found != dtype:
      raise TypeError(
          f'{".".join(path)}: expected dtype {dtype.name}, got {found.name}.'
      )
    if not _fits(tuple(value.shape), sizes):
      raise TypeError(
          f'{".".join(path)}: expected shape {shape}, got '
          f'{tuple(value.shape)}.'
      )
    leaves.append(value)

  return flatten


def _fits(shape, sizes):
  """Whether a shape has these sizes; None fits any."""
  return shape == sizes or sizes is None or (
      len(shape) == len(sizes)
      and all(want in (None, size) for want, size in zip(sizes, shape))
  )


def _to_array(value, dtype, path):
  """NumPy array of the asked dtype; refuses to change numbers silently."""
  if dtype.kind == 'O':
    return _to_strings(value, path)
  array = np.asarray(value)
  if array.dtype == dtype:
    return array
  # Arrays keep to their kind (float64 to float32, but not to int32). Python's
  # own numbers have no dtype to keep to: they may become any that holds them.
  plain = isinstance(value, (bool, int, float, list, tuple))
  if not np.can_cast(array.dtype, dtype, 'same_kind') and not (
      plain and array.dtype.kind in 'biuf'):
    raise TypeError(
        f'{".".join(path)}: expected dtype {dtype.name}, got {array.dtype}.'
    )
  # Cast, then look whether the cast lost something: for whole numbers and truth
  # values anything at all, for floats more than digits.
  with np.errstate(over='ignore', invalid='ignore'):
    cast = array.astype(dtype)
  is_same = (
      np.array_equal(cast, array)
      if dtype.kind in 'iub'
      else np.array_equal(np.isfinite(cast), np.isfinite(array))
  )
  if not is_same:
    raise TypeError(f'{".".join(path)}: {value!r} is no {dtype.name}.')
  return cast


def _to_strings(value, path):
  """Array of strings with all their bytes: NumPy's own cut NULs at the end."""
  array = np.array(value, dtype=object)
  if not all(isinstance(text, (str, bytes)) for text in array.flat):
    raise TypeError(f'{".".join(path)}: {value!r} is no string.')
  return array


def _to_variant(value, type_spec, path):
  """A dataset, or a list of elements, as a variant tensor."""
  if isinstance(value, tf.Tensor) and value.dtype == tf.variant:
    return value
  if isinstance(value, (list, tuple)):
    elements = value
    value = tf.data.Dataset.from_generator(
        lambda: iter(elements),
        output_signature=tff.types.type_to_tf_tensor_specs(type_spec.element),
    )
  if not isinstance(value, tf.data.Dataset):
    raise TypeError(
        f'{".".join(path)}: expected a tf.data.Dataset or a list, got '
        f'{type(value).__name__}.'
    )
  with tf.device('/device:CPU:0'):  # datasets have no other kernels
    return tf.data.experimental.to_variant(value)


# From leaves to values. A packer takes an iterator over leaves and draws as
# many as its type has.


def _packer(type_spec: tff.Type) -> Callable[[Iterator[Any]], Any]:
  if isinstance(type_spec, tff.FederatedType):
    return _packer(type_spec.member)
  if not isinstance(type_spec, tff.StructType):
    return next
  names = tff.structure.name_list_with_nones(type_spec)
  parts = [_packer(type_spec[index]) for index in range(len(names))]
  build = _builder(_container(type_spec), names)
  return lambda leaves: build([part(leaves) for part in parts])


def _builder(container, names):
  """How a container with these field names is made from its items."""
  if None in names or not names:
    return container or tuple
  if container is None:
    container = collections.OrderedDict
  if hasattr(container, '_fields') or hasattr(container, '__attrs_attrs__'):
    return lambda items: container(**dict(zip(names, items)))
  return lambda items: container(zip(names, items))


def _container(type_spec):
  if isinstance(type_spec, tff.types.StructWithPythonType):
    return type_spec.python_container
  return None
