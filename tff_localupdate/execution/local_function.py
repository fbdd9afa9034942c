"""Computations without client placement, as functions of this process."""

import contextlib
import functools
import threading
from typing import Any, Sequence

import tensorflow as tf

from tff_localupdate.execution import forms
from tff_localupdate.execution import values


class LocalFunction:
  """A computation without client placement, as a function of this process."""

  def __init__(self, computation: Any):
    signature = computation.type_signature
    self._parameter = values.Codec(signature.parameter, 'argument')
    self._result = values.Codec(signature.result)
    self._imported = forms.ImportedFunction(forms.local_form(computation))
    self._specs = [values.leaf_spec(t) for t in self._parameter.leaf_types]
    # Calls in two threads would share its variables, if it has any.
    has_state = self._imported.has_state
    self._turn = threading.Lock() if has_state else contextlib.nullcontext()

  @functools.cached_property
  def _function(self):
    # A trace makes the call atomic: eager calls would not order initializers.
    # Made without a call, of which TensorFlow would say that it traces often.
    return tf.function(
        lambda *leaves: self._imported(leaves), autograph=False
    ).get_concrete_function(*self._specs)

  def __call__(self, arg: Any) -> Any:
    return self.call_flat(self._parameter.flatten(arg))

  def call_flat(self, leaves: Sequence[Any], as_numpy: bool = True) -> Any:
    """Calls with flat leaves; gives a packed result."""
    tensors = [
        tf.convert_to_tensor(leaf, spec.dtype)
        for leaf, spec in zip(leaves, self._specs)
    ]
    with self._turn:
      results = self._function(*tensors)
    if as_numpy:
      results = [
          values.to_numpy(leaf, leaf_type)
          for leaf, leaf_type in zip(results, self._result.leaf_types)
      ]
    return self._result.pack(results)
