"""x* and f* of a global objective, solved once and kept on the disk."""

from collections.abc import Callable
import contextlib
import hashlib
import io
import os
import pathlib
from typing import NamedTuple, Optional, Union

import numpy as np

from baselines import files
from baselines.regret import objectives

# |x - x*|, by which f - f* is far below 1e-10 too.
_POINT_TOLERANCE = 1e-10
_NEWTON_STEPS = 100
_HALVINGS = 30
# In the key: to be changed when the solver is.
_VERSION = 2

SolvableObjective = Union[
    objectives.LeastSquares, objectives.SoftmaxRegression
]


class Optimum(NamedTuple):
  """The minimum of f.

  Attributes:
    point: x*, float64 [d].
    value: f* = f(x*).
    gradient_norm: |grad f(x*)| as computed. With mu-strong convexity |x - x*|
      is at most this / mu, and f(x) - f* at most its square / (2 mu).
  """

  point: np.ndarray
  value: float
  gradient_norm: float


def solve(objective: SolvableObjective) -> Optimum:
  """Solves for x* and f* to 1e-10.

  Least squares are solved in closed form. Softmax regression, whose l2_strength
  must be above 0, is solved by Newton's method, its steps by conjugate
  gradients to a relative residual of min(0.1, sqrt(|grad f|)), halved until
  |grad f| falls: by gradients and not by values, whose rounding hides the last
  digits.

  Raises:
    ValueError: If f need not have a minimum.
    ArithmeticError: If 1e-10 is not reached.
  """
  if isinstance(objective, objectives.LeastSquares):
    point = objective.minimizer
    norm = np.linalg.norm(objective.gradient(point))
    return Optimum(point, objective.least_value, float(norm))
  if objective.l2_strength <= 0.0:
    raise ValueError(
        'l2_strength must be above 0 for a minimum to exist, found '
        f'{objective.l2_strength}.'
    )
  point, norm = _newton(
      objective, _POINT_TOLERANCE * min(1.0, objective.l2_strength)
  )
  value = objective.values(point[np.newaxis])[0]
  return Optimum(point, float(value), norm)


def load_or_solve(
    objective: SolvableObjective, folder: Optional[pathlib.Path]
) -> Optimum:
  """Returns the optimum from a file of an earlier call, or solves for it.

  The file's name is a digest of the data and of all parameters of f, so that
  another objective never finds it. A damaged file is computed again. The folder
  is created if needed; None keeps nothing. Raises as `solve`.
  """
  if folder is None:
    return solve(objective)
  path = cache_path(objective, folder)
  found = _load(path, objective.dimension)
  if found is None:
    found = solve(objective)
    # A folder that cannot be written costs the next run some seconds.
    with contextlib.suppress(OSError):
      _save(path, found)
  return found


def default_folder() -> Optional[pathlib.Path]:
  """Returns the user's folder for files that can be computed anew, if any."""
  root = os.environ.get('XDG_CACHE_HOME') or '~/.cache'
  try:
    return pathlib.Path(root).expanduser() / 'tff_localupdate'
  except RuntimeError:
    return None


def cache_path(
    objective: SolvableObjective, folder: pathlib.Path
) -> pathlib.Path:
  """Returns the file in `folder` that keeps the optimum of `objective`."""
  key = hashlib.sha256(f'{_VERSION} {objective.digest}'.encode()).hexdigest()
  return pathlib.Path(folder) / f'optimum_{key[:32]}.npz'


def _newton(
    objective: objectives.SoftmaxRegression, tolerance: float
) -> tuple[np.ndarray, float]:
  """Returns a point with |grad f| <= tolerance, and that norm."""
  point = np.zeros(objective.dimension)
  gradient = objective.gradient(point)
  norm = np.linalg.norm(gradient)
  for _ in range(_NEWTON_STEPS):
    if norm <= tolerance:
      return point, float(norm)
    step = _conjugate_gradients(
        objective.hessian_products_at(point), -gradient,
        min(0.1, np.sqrt(norm)) * norm,
    )
    for _ in range(_HALVINGS):
      gradient = objective.gradient(point + step)
      new_norm = np.linalg.norm(gradient)
      if new_norm < norm:
        break
      step = step / 2.0
    else:
      break
    point, norm = point + step, new_norm
  raise ArithmeticError(
      f'No point with |grad f| <= {tolerance} was found, only {norm}.'
  )


def _conjugate_gradients(
    product: Callable[[np.ndarray], np.ndarray],
    target: np.ndarray,
    tolerance: float,
) -> np.ndarray:
  """Solves H s = target until |H s - target| <= tolerance."""
  solution = np.zeros_like(target)
  residual, direction = target.copy(), target.copy()
  square = residual @ residual
  for _ in range(len(target)):
    if np.sqrt(square) <= tolerance:
      break
    curved = product(direction)
    length = square / (direction @ curved)
    solution += length * direction
    residual -= length * curved
    square, last = residual @ residual, square
    direction = residual + (square / last) * direction
  return solution


def _load(path: pathlib.Path, dimension: int) -> Optional[Optimum]:
  """Returns what is in the file, None if it is missing or damaged."""
  try:
    with np.load(path, allow_pickle=False) as archive:
      point, numbers = archive['point'], archive['numbers']
      stored = bytes(archive['digest'])
  except files.DAMAGED_ARCHIVE:
    return None
  is_whole = point.shape == (dimension,) and numbers.shape == (2,)
  if not is_whole or stored != _content_digest(point, numbers):
    return None
  return Optimum(point, float(numbers[0]), float(numbers[1]))


def _save(path: pathlib.Path, optimum: Optimum) -> None:
  numbers = np.array([optimum.value, optimum.gradient_norm])
  digest = np.frombuffer(_content_digest(optimum.point, numbers), np.uint8)
  buffer = io.BytesIO()
  np.savez(buffer, point=optimum.point, numbers=numbers, digest=digest)
  # Several runs may solve for the same optimum at once.
  own = path.with_name(f'{path.name}.{os.getpid()}')
  files.write_whole(own, buffer.getvalue())
  os.replace(own, path)


def _content_digest(point: np.ndarray, numbers: np.ndarray) -> bytes:
  content = point.astype('<f8').tobytes() + numbers.astype('<f8').tobytes()
  return hashlib.sha256(content).digest()
