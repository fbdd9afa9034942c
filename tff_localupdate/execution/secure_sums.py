"""TFF's secure sums, as far as a simulation goes."""

from typing import Any

import numpy as np
import tensorflow as tf

from tff_localupdate.execution import forms
from tff_localupdate.execution import values


class SecureSums:
  """TFF's secure sums, simulated as plain sums with their ranges checked.

  Nothing is encrypted: a simulation shows the numbers that secure aggregation
  would give, and refuses inputs that the protocol could not carry.

  Attributes:
    used: Whether the process has any.
  """

  def __init__(self, form: Any):
    result = form.work.type_signature.result
    self._types = [values.leaf_types(result[i]) for i in (1, 2, 3)]
    self._limits = [
        forms.ImportedFunction(computation) for computation in (
            form.secure_sum_bitwidth, form.secure_sum_max_input,
            form.secure_modular_sum_modulus)
    ]
    self.used = any(self._types)

  def zeros(self) -> list[tf.Tensor]:
    """One zero per secure sum."""
    return [
        tf.zeros(leaf.shape, tf.as_dtype(np.dtype(leaf.dtype)))
        for leaves in self._types for leaf in leaves
    ]

  def add(
      self, sums: list[tf.Tensor], inputs: list[tf.Tensor]
  ) -> tuple[list[tf.Tensor], tf.Tensor]:
    """Adds one client's inputs; says whether they kept their ranges."""
    added = [a + b for a, b in zip(sums, inputs)]
    if not self.used:
      return added, tf.constant(True)
    bits, maxima, _ = [limit([]) for limit in self._limits]
    num_bits = len(self._types[0])
    checks = [
        _within(value, tf.bitwise.left_shift(
            tf.constant(1, tf.int64), tf.cast(bit, tf.int64)) - 1)
        for value, bit in zip(inputs, bits)
    ] + [
        _within(value, tf.cast(maximum, tf.int64))
        for value, maximum in zip(inputs[num_bits:], maxima)
    ]
    return added, tf.reduce_all(tf.stack(checks + [tf.constant(True)]))

  def finish(self, sums: list[tf.Tensor]) -> list[tf.Tensor]:
    """Takes the modular sums by their modulus."""
    first = len(self._types[0]) + len(self._types[1])
    if len(sums) == first:
      return sums
    moduli = self._limits[2]([])
    return sums[:first] + [
        tf.math.floormod(total, tf.cast(modulus, total.dtype))
        for total, modulus in zip(sums[first:], moduli)
    ]


def _within(value, maximum):
  value = tf.cast(value, tf.int64)
  return tf.reduce_all((value >= 0) & (value <= maximum))
