"""What accounting and replay need of a global objective f of paper 2.

NumPy in float64 only: what these numbers judge is computed by TensorFlow, so
they are independent of it. A point is a vector [d]: the flattened weights, a
kernel [features, classes] row by row. For a bias append a column of ones.
"""

from collections.abc import Callable, Iterator
import hashlib
from typing import Any, Protocol

import numpy as np

# What a block of an evaluation may take. Small enough for a processor's caches;
# larger ones were no faster.
BLOCK_BYTES = 16 * 2**20


class Objective(Protocol):
  """What accounting and replay need of an objective."""

  @property
  def dimension(self) -> int:
    """d."""

  @property
  def digest(self) -> str:
    """A digest of all that f depends on."""

  def values(self, points: np.ndarray) -> np.ndarray:
    """Returns f, [P], at each of the points [P, d]."""

  def gradient(self, point: np.ndarray) -> np.ndarray:
    """Returns the gradient, [d], of f at a point [d]."""

  def step_gradients(
      self, rows: np.ndarray
  ) -> Callable[[int, np.ndarray], np.ndarray]:
    """Returns the gradients of L steps: the function of l and points [M, d].

    Its values are [M, d], each the gradient at its own point on its own batch.

    Args:
      rows: int [M, L, B], the examples of each batch; all count the same.
    """


def checked_points(name: str, points: np.ndarray, dimension: int) -> np.ndarray:
  """Returns float64 `points`; ValueError unless their shape is [P, d]."""
  points = np.asarray(points, np.float64)
  if points.ndim != 2 or points.shape[1] != dimension:
    raise ValueError(
        f'{name} must have shape [P, {dimension}], found {points.shape}.'
    )
  return points


def set_checked_examples(objective: Any) -> None:
  """Puts checked float64 features and weights in the place of the fields.

  Args:
    objective: A frozen dataclass with the fields features [N, F], labels [N]
      and example_weights [N] or None.

  Raises:
    ValueError: If shapes do not fit or a number is not allowed.
  """
  features = np.ascontiguousarray(objective.features, np.float64)
  if features.ndim != 2 or not features.size:
    raise ValueError(
        f'features must have shape [N, F], N, F >= 1, found {features.shape}.'
    )
  if not np.all(np.isfinite(features)):
    raise ValueError('features must be finite, found one that is not.')
  if np.shape(objective.labels) != features.shape[:1]:
    raise ValueError(
        f'labels must have shape {features.shape[:1]}, found '
        f'{np.shape(objective.labels)}.'
    )
  weights = objective.example_weights
  weights = np.asarray(
      np.ones(len(features)) if weights is None else weights, np.float64
  )
  is_sound = np.all(np.isfinite(weights)) and np.all(weights >= 0.0)
  if weights.shape != features.shape[:1] or not is_sound or not weights.any():
    raise ValueError(
        f'example_weights must be {len(features)} finite numbers that are not '
        f'negative nor all 0, found shape {weights.shape}, {weights}.'
    )
  object.__setattr__(objective, 'features', features)
  object.__setattr__(objective, 'example_weights', weights / weights.sum())


def blocks(total: int, size: int) -> Iterator[slice]:
  """Yields slices of at most max(1, size) that cover range(total)."""
  size = max(1, size)
  for start in range(0, total, size):
    yield slice(start, start + size)


def digest_of(kind: str, numbers: tuple, *arrays: np.ndarray) -> str:
  """Returns a digest of a name, of numbers and of arrays with their shapes."""
  digest = hashlib.sha256(repr((kind, *map(float, numbers))).encode())
  for array in arrays:
    digest.update(f'{array.dtype.str}{array.shape}'.encode())
    digest.update(np.ascontiguousarray(array))
  return digest.hexdigest()
