"""L2-regularized softmax regression over all data, many points at a time."""

from collections.abc import Callable
import dataclasses
import functools
from typing import Optional

import numpy as np

from baselines.experiment import objectives

# A block of points has half of the block's bytes, its logits the other half.
_MOST_POINTS_PER_BLOCK = 64
# exp(+-600) and sums of such numbers are normal numbers of float64.
_SAFE_LOGIT = 600.0


@dataclasses.dataclass(frozen=True, eq=False)
class SoftmaxRegression:
  """f(W) = sum_i w_i CE(softmax(a_i W), y_i) + (mu / 2) |W|_F^2.

  Attributes:
    features: a_i, [N, F]; kept as float64.
    labels: y_i, [N], whole numbers in [0, num_classes).
    num_classes: C >= 2; d = F C.
    l2_strength: mu >= 0.
    example_weights: w_i >= 0, [N], brought to sum 1; None is 1 / N each.

  Raises:
    ValueError: If shapes do not fit or a number is not allowed.
  """

  features: np.ndarray
  labels: np.ndarray
  num_classes: int
  l2_strength: float
  example_weights: Optional[np.ndarray] = None

  def __post_init__(self) -> None:
    """Checks itself."""
    if self.num_classes < 2:
      raise ValueError(
          f'num_classes must be at least 2, found {self.num_classes}.'
      )
    if not (np.isfinite(self.l2_strength) and self.l2_strength >= 0.0):
      raise ValueError(
          'l2_strength must be a finite number that is not negative, found '
          f'{self.l2_strength!r}.'
      )
    objectives.set_checked_examples(self)
    labels = np.asarray(self.labels)
    if not np.all(np.isin(labels, np.arange(self.num_classes))):
      raise ValueError(
          f'labels must be whole numbers in [0, {self.num_classes}), found '
          f'{np.unique(labels)}.'
      )
    object.__setattr__(self, 'labels', labels.astype(np.int64))

  @property
  def dimension(self) -> int:
    """d = F C."""
    return self.features.shape[1] * self.num_classes

  def values(self, points: np.ndarray) -> np.ndarray:
    """Returns f, [P], at points [P, d].

    The matrix products are over blocks of points and blocks of examples, which
    take nearly all of the time. Needs little more than `BLOCK_BYTES`, or what
    one point does if that is more, besides the points and the data.

    Args:
      points: [P, d]. Not finite ones give values that are not finite.
    """
    points = objectives.checked_points('points', points, self.dimension)
    values = np.empty(len(points))
    most = min(
        objectives.BLOCK_BYTES // (16 * self.dimension), _MOST_POINTS_PER_BLOCK
    )
    for block in objectives.blocks(len(points), most):
      with np.errstate(invalid='ignore', over='ignore'):
        values[block] = self._block_values(points[block])
    return values

  def gradient(self, point: np.ndarray) -> np.ndarray:
    """See `Objective`."""
    errors = self._probabilities(point)
    errors[np.arange(len(errors)), self.labels] -= 1.0
    return self._pull_back(errors) + self.l2_strength * point

  @property
  def smoothness(self) -> float:
    """An upper bound on the curvature: lambda_max(E a a') / 2 + mu.

    No eigenvalue of the Hessian of the cross-entropy in the logits is above
    1/2.
    """
    weighted = self.features * self.example_weights[:, np.newaxis]
    covariance = self.features.T @ weighted
    return float(np.linalg.eigvalsh(covariance)[-1]) / 2.0 + self.l2_strength

  def gradient_variance(self, point: np.ndarray) -> float:
    """Returns E |g - grad f|^2, g the gradient of one example drawn by w."""
    errors = self._probabilities(point)
    errors[np.arange(len(errors)), self.labels] -= 1.0
    squares = np.einsum('nf,nf->n', self.features, self.features)
    second = self.example_weights @ (squares * np.sum(errors**2, axis=1))
    # The penalty's part is the same for all examples.
    # Not below 0, where all examples have the same gradient.
    return max(0.0, float(second - np.sum(self._pull_back(errors) ** 2)))

  def hessian_products_at(
      self, point: np.ndarray
  ) -> Callable[[np.ndarray], np.ndarray]:
    """Returns the function of v, [d], that is H(point) v."""
    probabilities = self._probabilities(point)

    def product(vector):
      changes = self.features @ vector.reshape(-1, self.num_classes)
      changes *= probabilities
      changes -= probabilities * changes.sum(axis=1, keepdims=True)
      return self._pull_back(changes) + self.l2_strength * vector

    return product

  def step_gradients(
      self, rows: np.ndarray
  ) -> Callable[[int, np.ndarray], np.ndarray]:
    """See `Objective`; examples are copied step by step, for they are large."""
    clients, places = np.ogrid[: rows.shape[0], : rows.shape[2]]

    def gradients(step, points):
      batch = rows[:, step]
      features = self.features[batch]
      kernels = points.reshape(len(points), -1, self.num_classes)
      errors = _softmax(features @ kernels)
      errors[clients, places, self.labels[batch]] -= 1.0
      sums = features.transpose(0, 2, 1) @ errors
      means = sums.reshape(points.shape) / batch.shape[1]
      return means + self.l2_strength * points

    return gradients

  @functools.cached_property
  def digest(self) -> str:
    """A digest of all that f depends on."""
    return objectives.digest_of(
        'softmax regression', (self.num_classes, self.l2_strength),
        self.features, self.labels, self.example_weights,
    )

  def _block_values(self, points: np.ndarray) -> np.ndarray:
    kernels = points.reshape(len(points), -1, self.num_classes)
    # [F, C P]: the sum over classes then adds contiguous rows of P.
    kernels = kernels.transpose(1, 2, 0).reshape(self.features.shape[1], -1)
    norm = np.sqrt(np.max(np.einsum('fk,fk->k', kernels, kernels)))
    is_safe = bool(norm * self._largest_norm < _SAFE_LOGIT)
    log_sums = np.zeros(len(points))
    num_columns = kernels.shape[1]
    most = max(1, objectives.BLOCK_BYTES // (16 * num_columns))
    logits = np.empty((min(most, len(self.features)), num_columns))
    for rows in objectives.blocks(len(self.features), most):
      features = self.features[rows]
      part = np.matmul(features, kernels, out=logits[: len(features)])
      part = part.reshape(len(features), self.num_classes, len(points))
      log_sums += self.example_weights[rows] @ _log_sum_exp(part, is_safe)
    squares = np.einsum('pd,pd->p', points, points)
    # The logits of the labels are linear in the point.
    linear = points @ self._label_features
    return log_sums - linear + 0.5 * self.l2_strength * squares

  def _probabilities(self, point: np.ndarray) -> np.ndarray:
    return _softmax(self.features @ point.reshape(-1, self.num_classes))

  def _pull_back(self, errors: np.ndarray) -> np.ndarray:
    weighted = errors * self.example_weights[:, np.newaxis]
    return (self.features.T @ weighted).reshape(-1)

  @functools.cached_property
  def _largest_norm(self) -> float:
    squares = np.einsum('nf,nf->n', self.features, self.features)
    return float(np.sqrt(np.max(squares)))

  @functools.cached_property
  def _label_features(self) -> np.ndarray:
    one_hot = np.eye(self.num_classes)[self.labels]
    return self._pull_back(one_hot)


def _log_sum_exp(logits: np.ndarray, is_safe: bool) -> np.ndarray:
  """Returns log sum_c exp of logits [n, C, P], which it overwrites."""
  largest = 0.0
  if not is_safe:
    largest = logits.max(axis=1)
    logits -= largest[:, np.newaxis]
  np.exp(logits, out=logits)
  sums = logits.sum(axis=1)
  return largest + np.log(sums, out=sums)


def _softmax(logits: np.ndarray) -> np.ndarray:
  """Returns the softmax over the last axis."""
  powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
  return powers / powers.sum(axis=-1, keepdims=True)
