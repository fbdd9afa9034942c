"""Python values to flat lists of tensors and back, directed by TFF types.

The order of leaves is TFF's own: depth first, fields in the order of the type.
"""

import collections
from typing import Any, Iterator, Optional

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff


def flatten(value: Any, type_spec: tff.Type, path: str = 'value') -> list[Any]:
  """Lists the leaves of `value`, one per tensor or sequence of `type_spec`.

  Args:
    value: Nested NamedTuples, mappings, sequences, attrs classes or
      `tff.structure.Struct`s that match `type_spec`; leaves are tensors,
      arrays or numbers, and `tf.data.Dataset`s or lists for sequences.
    type_spec: A TFF type of structures, tensors and sequences (a placement at
      the server is looked through).
    path: Name used in errors.

  Returns:
    Leaves; a dataset is given as a variant tensor.

  Raises:
    TypeError: If the structure, a dtype or a shape does not match.
  """
  if isinstance(type_spec, tff.FederatedType):
    return flatten(value, type_spec.member, path)
  if isinstance(type_spec, tff.StructType):
    leaves = []
    for name, item, item_type in _fields(value, type_spec, path):
      leaves.extend(flatten(item, item_type, f'{path}.{name}'))
    return leaves
  if isinstance(type_spec, tff.SequenceType):
    return [_to_variant(value, type_spec, path)]
  if isinstance(type_spec, tff.TensorType):
    return [_to_leaf(value, type_spec, path)]
  raise TypeError(f'{path}: values of TFF type {type_spec} are not supported.')


def pack(leaves: Iterator[Any], type_spec: tff.Type) -> Any:
  """Inverse of `flatten`: builds the Python containers named in the type."""
  if isinstance(type_spec, tff.FederatedType):
    return pack(leaves, type_spec.member)
  if not isinstance(type_spec, tff.StructType):
    return next(leaves)
  names = tff.structure.name_list_with_nones(type_spec)
  items = [pack(leaves, type_spec[i]) for i in range(len(names))]
  container = (
      type_spec.python_container
      if isinstance(type_spec, tff.types.StructWithPythonType) else None
  )
  if any(name is None for name in names):
    return (container or tuple)(items)
  if container is None:
    return collections.OrderedDict(zip(names, items))
  if hasattr(container, '_fields') or hasattr(container, '__attrs_attrs__'):
    return container(**dict(zip(names, items)))
  return container(zip(names, items))


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


def _fields(value, type_spec, path):
  """Pairs each field of a struct type with the item of `value`."""
  names = tff.structure.name_list_with_nones(type_spec)
  if value is None and not names:
    return
  if isinstance(value, collections.abc.Mapping):
    items = [value.get(n, _MISSING) for n in names]
    size = len(value)
  elif hasattr(value, '__attrs_attrs__'):
    items = [getattr(value, n, _MISSING) for n in names]
    size = len(value.__attrs_attrs__)
  elif isinstance(value, (tff.structure.Struct, tuple, list)):
    size = len(value)
    items = list(value) if size == len(names) else []
    given = getattr(value, '_fields', None)
    if given and size == len(names) and None not in names:
      items = [getattr(value, n, _MISSING) for n in names]
  else:
    raise TypeError(
        f'{path}: expected a structure of type {type_spec}, got '
        f'{type(value).__name__}.'
    )
  if size != len(names) or any(item is _MISSING for item in items):
    raise TypeError(
        f'{path}: expected fields {names}, got {_describe(value)}.'
    )
  for index, (name, item) in enumerate(zip(names, items)):
    yield name or index, item, type_spec[index]


_MISSING = object()


def _describe(value):
  if isinstance(value, collections.abc.Mapping):
    return list(value)
  return list(getattr(value, '_fields', ())) or f'{len(value)} items'


def _to_leaf(value, type_spec, path):
  """Checks one tensor leaf; conversion is left to TensorFlow."""
  dtype = type_spec.dtype
  if isinstance(value, tf.Tensor):
    if value.dtype != tf.as_dtype(dtype):
      raise TypeError(
          f'{path}: expected dtype {tf.as_dtype(dtype).name}, got '
          f'{value.dtype.name}.'
      )
    shape = value.shape
  else:
    value = _to_array(value, dtype, path)
    shape = value.shape
  if not tf.TensorShape(type_spec.shape).is_compatible_with(shape):
    raise TypeError(
        f'{path}: expected shape {type_spec.shape}, got {tuple(shape)}.'
    )
  return value


def _to_array(value, dtype, path):
  """NumPy array of the asked dtype; refuses to change numbers silently."""
  if dtype is np.str_:
    return np.asarray(value, dtype=object)
  array = np.asarray(value)
  if array.dtype == dtype:
    return array
  plain = isinstance(value, (bool, int, float, list, tuple))
  if not plain and not np.can_cast(array.dtype, dtype, 'same_kind'):
    raise TypeError(
        f'{path}: expected dtype {np.dtype(dtype).name}, got {array.dtype}.'
    )
  cast = array.astype(dtype)
  if np.issubdtype(dtype, np.integer) and not np.array_equal(cast, array):
    raise TypeError(f'{path}: {value!r} is no {np.dtype(dtype).name}.')
  return cast


def _to_variant(value, type_spec, path):
  """A dataset, or a list of elements, as a variant tensor."""
  if isinstance(value, tf.Tensor) and value.dtype == tf.variant:
    return value
  if isinstance(value, (list, tuple)):
    value = _dataset_of(value, type_spec)
  if not isinstance(value, tf.data.Dataset):
    raise TypeError(
        f'{path}: expected a tf.data.Dataset or a list, got '
        f'{type(value).__name__}.'
    )
  with tf.device('/device:CPU:0'):  # datasets have no other kernels
    return tf.data.experimental.to_variant(value)


def _dataset_of(elements, type_spec):
  spec = tff.types.type_to_tf_tensor_specs(type_spec.element)
  return tf.data.Dataset.from_generator(
      lambda: iter(elements), output_signature=spec
  )
