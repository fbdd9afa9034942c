"""Sums of weights and gradients of which some are rows only.

A model that looks up rows of a large table gets a gradient in
`tf.IndexedSlices`: a step then reads and writes the rows of its batch, in
place, and not the whole table. The sums are those of the dense gradient, taken
row by row in the order of the slices.
"""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

ScaleFn = Callable[[tf.Tensor], tf.Tensor]


def _same(gradient: tf.Tensor) -> tf.Tensor:
  return gradient


def add(point: Any, gradient: Any, scale_fn: ScaleFn = _same) -> Any:
  """Returns x + s(g).

  Args:
    point: x, a structure of tensors.
    gradient: g, the same structure of tensors, or `tf.IndexedSlices` of rows,
      in which an index may come up several times.
    scale_fn: s, a multiplication of each number by one factor.

  Returns:
    The structure of tensors.
  """

  def add_leaf(x, g):
    if not isinstance(g, tf.IndexedSlices):
      return x + scale_fn(g)
    return tf.tensor_scatter_nd_add(
        x, g.indices[:, tf.newaxis], scale_fn(g.values)
    )

  return tf.nest.map_structure(add_leaf, point, gradient)


def subtract(point: Any, gradient: Any, scale_fn: ScaleFn = _same) -> Any:
  """Returns x - s(g); the arguments are those of `add`."""

  def subtract_leaf(x, g):
    if not isinstance(g, tf.IndexedSlices):
      return x - scale_fn(g)
    return tf.tensor_scatter_nd_sub(
        x, g.indices[:, tf.newaxis], scale_fn(g.values)
    )

  return tf.nest.map_structure(subtract_leaf, point, gradient)
