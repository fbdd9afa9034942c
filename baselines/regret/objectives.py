"""The global objectives f of paper 2, and what accounting needs of one.

NumPy in float64 only: what these numbers judge is computed by TensorFlow, so
they are independent of it. A point is a vector [d]: the flattened weights, a
kernel [features, classes] row by row. For a bias append a column of ones.

Least squares is in closed form through the Gram matrix; softmax regression
takes many points at a time.
"""

from collections.abc import Callable, Iterator
import dataclasses
import functools
import hashlib
from typing import Any, Optional, Protocol

import numpy as np

from baselines.tasks import registry

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
      self, rows: np.ndarray, batch_sizes: Optional[np.ndarray] = None
  ) -> Callable[[int, np.ndarray], np.ndarray]:
    """Returns the gradients of L steps: the function of l and points [M, d].

    Its values are [M, d], each the gradient at its own point on its own batch;
    see `counter.RoundStart` for `rows` and `batch_sizes`.
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
  """Replaces the fields by checked float64 features and weights.

  The objective is a frozen dataclass with the fields features [N, F], labels
  [N] and example_weights [N] or None. Raises ValueError if shapes do not fit or
  a number is not allowed.
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


def _row_weights(
    rows: np.ndarray, batch_sizes: Optional[np.ndarray]
) -> np.ndarray:
  """Returns rows' weights in their batches, to be broadcast to [M, L, B]."""
  if batch_sizes is None:
    return np.full((1, 1, 1), 1.0 / rows.shape[2])
  sizes = batch_sizes[..., np.newaxis]
  counts = np.arange(rows.shape[2]) < sizes
  return counts / np.maximum(sizes, 1)


def digest_of(kind: str, numbers: tuple, *arrays: np.ndarray) -> str:
  """Returns a digest of a name, of numbers and of arrays with their shapes."""
  digest = hashlib.sha256(repr((kind, *map(float, numbers))).encode())
  for array in arrays:
    digest.update(f'{array.dtype.str}{array.shape}'.encode())
    digest.update(np.ascontiguousarray(array))
  return digest.hexdigest()


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
    set_checked_examples(self)
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
    points = checked_points('points', points, self.dimension)
    values = np.empty(len(points))
    most = BLOCK_BYTES // (16 * self.dimension)
    for block in blocks(len(points), most):
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
      self, rows: np.ndarray, batch_sizes: Optional[np.ndarray] = None
  ) -> Callable[[int, np.ndarray], np.ndarray]:
    """See `Objective`."""
    weights = _row_weights(rows, batch_sizes)
    weights = weights.transpose(1, 0, 2)[..., np.newaxis]
    # One copy of all examples, those of a step side by side.
    rows = np.ascontiguousarray(rows.transpose(1, 0, 2))
    features, labels = self.features[rows], self.labels[rows][..., np.newaxis]
    transposed = features.transpose(0, 1, 3, 2)
    # Scaled once: where a step takes microseconds, each operation counts.
    scale = 2.0 * self.loss_scale * weights
    features, labels = scale * features, scale * labels

    def gradients(step, points):
      residuals = np.matmul(features[step], points[:, :, np.newaxis])
      residuals -= labels[step]
      return np.matmul(transposed[step], residuals)[:, :, 0]

    return gradients

  @functools.cached_property
  def digest(self) -> str:
    """A digest of all that f depends on."""
    return digest_of(
        'least squares', (self.loss_scale,),
        self.features, self.labels, self.example_weights,
    )


# A block of points has half of the block's bytes, its logits the other half.
_MOST_POINTS_PER_BLOCK = 64
# exp(+-600) and sums of such numbers are normal numbers of float64.
_SAFE_LOGIT = 600.0


@dataclasses.dataclass(frozen=True, eq=False)
class SoftmaxRegression:
  """f(W) = sum_i w_i CE(softmax(a_i W), y_i) + (mu / 2) |W|_F^2.

  Features, example weights and errors are as in `LeastSquares`.

  Attributes:
    labels: y_i, [N], whole numbers in [0, num_classes).
    num_classes: C >= 2; d = F C.
    l2_strength: mu >= 0.
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
    set_checked_examples(self)
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
    """Returns f, [P], at points [P, d]; not finite where those are not.

    The matrix products are over blocks of points and blocks of examples, which
    take nearly all of the time. Needs little more than `BLOCK_BYTES`, or what
    one point does if that is more, besides the points and the data.
    """
    points = checked_points('points', points, self.dimension)
    values = np.empty(len(points))
    most = min(
        BLOCK_BYTES // (16 * self.dimension), _MOST_POINTS_PER_BLOCK
    )
    for block in blocks(len(points), most):
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

    The Hessian in the logits has no eigenvalue above 1/2.
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
      self, rows: np.ndarray, batch_sizes: Optional[np.ndarray] = None
  ) -> Callable[[int, np.ndarray], np.ndarray]:
    """See `Objective`; examples are copied step by step, for they are large."""
    weights = _row_weights(rows, batch_sizes)
    clients, places = np.ogrid[: rows.shape[0], : rows.shape[2]]

    def gradients(step, points):
      batch = rows[:, step]
      features = self.features[batch]
      kernels = points.reshape(len(points), -1, self.num_classes)
      errors = _softmax(features @ kernels)
      errors[clients, places, self.labels[batch]] -= 1.0
      errors *= weights[:, step % weights.shape[1], :, np.newaxis]
      means = features.transpose(0, 2, 1) @ errors
      return means.reshape(points.shape) + self.l2_strength * points

    return gradients

  @functools.cached_property
  def digest(self) -> str:
    """A digest of all that f depends on."""
    return digest_of(
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
    most = max(1, BLOCK_BYTES // (16 * num_columns))
    logits = np.empty((min(most, len(self.features)), num_columns))
    for rows in blocks(len(self.features), most):
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


_KINDS = {
    'least_squares': LeastSquares,
    'softmax_regression': SoftmaxRegression,
}


def build_objective(task: Any) -> Objective:
  """Returns f over all training examples of a task that has an objective."""
  x, y = task.train.features
  kind = _KINDS[registry.task_entry(task.name).objective]
  return kind(x, np.ravel(y), **task.objective_constants)
