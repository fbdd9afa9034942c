"""Least squares over all data, in closed form through the Gram matrix."""

from collections.abc import Callable
import dataclasses
import functools
from typing import Optional

import numpy as np

from baselines.experiment import objectives


@dataclasses.dataclass(frozen=True, eq=False)
class LeastSquares:
  """f(x) = c sum_i w_i (<a_i, x> - y_i)^2.

  Attributes:
    features: a_i, [N, d]; kept as float64.
    labels: y_i, [N].
    loss_scale: c > 0. The scaling `row_sum` of the paper's synthetic data has c
      = 1 / N.
    example_weights: w_i >= 0, [N], brought to sum 1; None is 1 / N each.

  Raises:
    ValueError: If shapes do not fit or a number is not allowed.
  """

  features: np.ndarray
  labels: np.ndarray
  loss_scale: float = 1.0
  example_weights: Optional[np.ndarray] = None

  def __post_init__(self) -> None:
    """Checks itself."""
    objectives.set_checked_examples(self)
    labels = np.asarray(self.labels, np.float64)
    if not np.all(np.isfinite(labels)):
      raise ValueError('labels must be finite, found one that is not.')
    if not (np.isfinite(self.loss_scale) and self.loss_scale > 0.0):
      raise ValueError(
          'loss_scale must be a finite number above 0, found '
          f'{self.loss_scale!r}.'
      )
    object.__setattr__(self, 'labels', labels)

  @property
  def dimension(self) -> int:
    """d."""
    return self.features.shape[1]

  @functools.cached_property
  def hessian(self) -> np.ndarray:
    """H = 2 c sum_i w_i a_i a_i', [d, d]."""
    weighted = self.features * self.example_weights[:, np.newaxis]
    return 2.0 * self.loss_scale * (self.features.T @ weighted)

  @property
  def smoothness(self) -> float:
    """The largest eigenvalue of H."""
    return float(np.linalg.eigvalsh(self.hessian)[-1])

  def gradient_variance(self, point: np.ndarray) -> float:
    """Returns E |g - grad f|^2, g the gradient of one example drawn by w."""
    residuals = self.features @ point - self.labels
    noise = 2.0 * self.loss_scale * residuals[:, np.newaxis] * self.features
    noise -= self.gradient(point)
    return float(self.example_weights @ np.einsum('ni,ni->n', noise, noise))

  @functools.cached_property
  def minimizer(self) -> np.ndarray:
    """x*, [d]; the one of least norm if there are many."""
    # Of the examples, not of H, whose condition number is the square.
    roots = np.sqrt(self.example_weights)
    left, sizes, right = np.linalg.svd(
        roots[:, np.newaxis] * self.features, full_matrices=False
    )
    least = sizes[0] * max(self.features.shape) * np.finfo(np.float64).eps
    inverse = np.zeros_like(sizes)
    np.divide(1.0, sizes, out=inverse, where=sizes > least)
    point = np.zeros(self.dimension)
    for _ in range(3):  # The second and third refine the first.
      residuals = roots * (self.labels - self.features @ point)
      point += right.T @ (inverse * (left.T @ residuals))
    return point

  @functools.cached_property
  def least_value(self) -> float:
    """f* = f(x*)."""
    residuals = self.features @ self.minimizer - self.labels
    return float(self.loss_scale * (self.example_weights @ residuals**2))

  def values(self, points: np.ndarray) -> np.ndarray:
    """Returns f* + 1/2 (x - x*)' H (x - x*), see `Objective`."""
    points = objectives.checked_points('points', points, self.dimension)
    values = np.empty(len(points))
    most = objectives.BLOCK_BYTES // (16 * self.dimension)
    for block in objectives.blocks(len(points), most):
      differences = points[block] - self.minimizer
      curved = differences @ self.hessian
      values[block] = 0.5 * np.einsum('pi,pi->p', curved, differences)
    return self.least_value + values

  def gradient(self, point: np.ndarray) -> np.ndarray:
    """See `Objective`."""
    residuals = self.features @ point - self.labels
    weighted = self.example_weights * residuals
    return 2.0 * self.loss_scale * (weighted @ self.features)

  def step_gradients(
      self, rows: np.ndarray
  ) -> Callable[[int, np.ndarray], np.ndarray]:
    """See `Objective`."""
    # One copy of all examples, those of a step side by side.
    rows = np.ascontiguousarray(rows.transpose(1, 0, 2))
    features, labels = self.features[rows], self.labels[rows][..., np.newaxis]
    transposed = features.transpose(0, 1, 3, 2)
    # Scaled once: where a step takes microseconds, each operation counts.
    scale = 2.0 * self.loss_scale / rows.shape[2]
    features, labels = scale * features, scale * labels

    def gradients(step, points):
      residuals = np.matmul(features[step], points[:, :, np.newaxis])
      residuals -= labels[step]
      return np.matmul(transposed[step], residuals)[:, :, 0]

    return gradients

  @functools.cached_property
  def digest(self) -> str:
    """A digest of all that f depends on."""
    return objectives.digest_of(
        'least squares', (self.loss_scale,),
        self.features, self.labels, self.example_weights,
    )
