"""Quadratic losses: examples, clients made of them, populations of clients."""

from collections.abc import Sequence
import dataclasses
from typing import Optional

import numpy as np

from tff_localupdate.theory import constants as constants_lib

# How far the two triangles of a Hessian may differ, relative to its largest
# entry.
_SYMMETRY_TOLERANCE = 1e-9


@dataclasses.dataclass(frozen=True, eq=False)
class QuadraticExamples:
  """One client: finitely many examples z, all equally likely under D_i.

      f(x; z) = 1/2 (x - c_z)' A_z (x - c_z)

  Attributes:
    hessians: A_z, float64 [n, d, d], symmetric.
    centers: c_z, float64 [n, d].

  Departures: the paper asks every A_z to be positive definite. Only their mean
  has to be here, for which `population_of` looks.

  Raises:
    ValueError: If shapes do not fit or a number is not finite.
  """

  hessians: np.ndarray
  centers: np.ndarray

  def __post_init__(self) -> None:
    _set_checked(self, 'hessians', 'centers')

  @property
  def hessian(self) -> np.ndarray:
    """A_i = E A_z, [d, d]."""
    return self.hessians.mean(axis=0)

  @property
  def offsets(self) -> np.ndarray:
    """b_z = A_z c_z, [n, d]: the gradient at x is A_z x - b_z."""
    return np.einsum('nij,nj->ni', self.hessians, self.centers)

  @property
  def center(self) -> np.ndarray:
    """c_i = A_i^{-1} E[A_z c_z], [d], the minimizer of f_i (Lemma 1)."""
    return np.linalg.solve(self.hessian, self.offsets.mean(axis=0))

  @property
  def least_loss(self) -> float:
    """tau_i = f_i(c_i), what Lemma 1 drops: 0 if all c_z are the same."""
    return self.loss(self.center)

  def loss(self, x: np.ndarray) -> float:
    """f_i(x), the mean of f(x; z)."""
    return float(np.mean(_half_squares(self.hessians, x - self.centers)))

  def gradients(self, x: np.ndarray) -> np.ndarray:
    """The gradients of f(x; z) at x, [n, d]."""
    return np.einsum('nij,nj->ni', self.hessians, x - self.centers)


@dataclasses.dataclass(frozen=True, eq=False)
class QuadraticPopulation:
  """Clients i ~ P with f_i(x) = 1/2 (x - c_i)' A_i (x - c_i).

  Attributes:
    hessians: A_i, float64 [N, d, d], symmetric positive definite.
    centers: c_i, float64 [N, d].
    probabilities: P, float64 [N], positive with sum 1; None is uniform.

  Raises:
    ValueError: If shapes do not fit, a number is not finite, a Hessian is not
      symmetric positive definite, or the probabilities are none.
  """

  hessians: np.ndarray
  centers: np.ndarray
  probabilities: Optional[np.ndarray] = None

  def __post_init__(self) -> None:
    _set_checked(self, 'hessians', 'centers')
    _check_definite(np.linalg.eigvalsh(self.hessians))
    probabilities = _checked_probabilities(
        self.probabilities, len(self.hessians)
    )
    object.__setattr__(self, 'probabilities', probabilities)

  @property
  def num_clients(self) -> int:
    """N."""
    return self.centers.shape[0]

  @property
  def dimension(self) -> int:
    """d."""
    return self.centers.shape[1]

  @property
  def mean_hessian(self) -> np.ndarray:
    """A = E A_i, [d, d]."""
    return self.mean(self.hessians)

  @property
  def mean_center(self) -> np.ndarray:
    """c = E c_i, [d]."""
    return self.mean(self.centers)

  @property
  def minimizer(self) -> np.ndarray:
    """x* = A^{-1} E[A_i c_i], [d], the minimizer of f."""
    offsets = np.einsum('nij,nj->ni', self.hessians, self.centers)
    return np.linalg.solve(self.mean_hessian, self.mean(offsets))

  @property
  def constants(self) -> constants_lib.PopulationConstants:
    """The smallest constants that Assumptions 2 and 3 admit."""
    eigenvalues = np.linalg.eigvalsh(self.hessians)
    norms = np.linalg.norm(self.hessians - self.mean_hessian, 2, axis=(1, 2))
    deviations = np.sum((self.centers - self.mean_center) ** 2, axis=1)
    return constants_lib.PopulationConstants(
        strong_convexity=float(eigenvalues.min()),
        smoothness=float(eigenvalues.max()),
        hessian_deviation=float(np.sqrt(self.mean(norms**2))),
        center_deviation=float(np.sqrt(self.mean(deviations))),
    )

  def mean(self, values: np.ndarray) -> np.ndarray:
    """The expectation over the clients of `values` [N, ...]."""
    return np.tensordot(self.probabilities, values, axes=1)

  def losses(self, x: np.ndarray) -> np.ndarray:
    """f_i(x), [N], without tau_i."""
    return _half_squares(self.hessians, x - self.centers)

  def loss(self, x: np.ndarray) -> float:
    """f(x) = E f_i(x), without the tau_i."""
    return float(self.mean(self.losses(x)))

  def gradients(self, x: np.ndarray) -> np.ndarray:
    """The gradients of the f_i at x, [N, d]."""
    return np.einsum('nij,nj->ni', self.hessians, x - self.centers)


def population_of(
    clients: Sequence[QuadraticExamples],
    probabilities: Optional[np.ndarray] = None,
) -> QuadraticPopulation:
  """Returns the population of clients that are given by their examples.

  Args:
    clients: The clients.
    probabilities: P, [N]; None is uniform.

  Returns:
    The population, with A_i and c_i of Lemma 1.

  Raises:
    ValueError: As `QuadraticPopulation`, also if a mean Hessian is singular.
  """
  for client in clients:  # Before their centers, which need it.
    _check_definite(np.linalg.eigvalsh(client.hessian))
  return QuadraticPopulation(
      np.stack([client.hessian for client in clients]),
      np.stack([client.center for client in clients]),
      probabilities,
  )


def examples_of(population: QuadraticPopulation) -> list[QuadraticExamples]:
  """Returns the clients of `population`, each with one example (A_i, c_i)."""
  return [
      QuadraticExamples(hessian[np.newaxis], center[np.newaxis])
      for hessian, center in zip(population.hessians, population.centers)
  ]


def checked_matrices(name: str, matrices: np.ndarray) -> np.ndarray:
  """Returns `matrices` in float64, exactly symmetric.

  Args:
    name: The name of the argument, for the error.
    matrices: [..., d, d].

  Returns:
    The mean of each matrix and its transpose.

  Raises:
    ValueError: If the matrices are not square, finite and symmetric.
  """
  matrices = np.asarray(matrices, np.float64)
  if matrices.ndim < 2 or matrices.shape[-1] != matrices.shape[-2]:
    raise ValueError(
        f'{name} must have shape [..., d, d], found {matrices.shape}.'
    )
  if not np.all(np.isfinite(matrices)):
    raise ValueError(f'{name} must be finite, found {matrices}.')
  transposed = np.swapaxes(matrices, -1, -2)
  skews, sizes = (
      np.max(np.abs(entries), axis=(-2, -1), initial=0.0)
      for entries in (matrices - transposed, matrices)
  )
  if np.any(skews > _SYMMETRY_TOLERANCE * sizes):
    raise ValueError(
        f'{name} must be symmetric, found entries that differ by {skews}.'
    )
  return (matrices + transposed) / 2.0


def _check_definite(eigenvalues: np.ndarray) -> None:
  lowest = eigenvalues.min()
  if lowest <= 0.0:
    raise ValueError(
        f'hessians must be positive definite, found the eigenvalue {lowest}.'
    )


def _set_checked(owner: object, hessians_name: str, centers_name: str) -> None:
  """Puts checked float64 arrays in the place of two fields."""
  hessians = checked_matrices(hessians_name, getattr(owner, hessians_name))
  centers = np.asarray(getattr(owner, centers_name), np.float64)
  if hessians.ndim != 3 or hessians.size == 0:
    raise ValueError(
        f'{hessians_name} must have shape [n, d, d] with n, d >= 1, found '
        f'{hessians.shape}.'
    )
  if centers.shape != hessians.shape[:2]:
    raise ValueError(
        f'{centers_name} must have shape {hessians.shape[:2]}, found '
        f'{centers.shape}.'
    )
  if not np.all(np.isfinite(centers)):
    raise ValueError(f'{centers_name} must be finite, found {centers}.')
  object.__setattr__(owner, hessians_name, hessians)
  object.__setattr__(owner, centers_name, centers)


def _checked_probabilities(
    probabilities: Optional[np.ndarray], num_clients: int
) -> np.ndarray:
  if probabilities is None:
    return np.full(num_clients, 1.0 / num_clients)
  probabilities = np.asarray(probabilities, np.float64)
  if probabilities.shape != (num_clients,):
    raise ValueError(
        f'probabilities must have shape ({num_clients},), found '
        f'{probabilities.shape}.'
    )
  total = probabilities.sum()
  if not np.all(probabilities > 0.0) or not abs(total - 1.0) < 1e-9:
    raise ValueError(
        f'probabilities must be positive with sum 1, found {probabilities}.'
    )
  return probabilities / total


def _half_squares(hessians: np.ndarray, differences: np.ndarray) -> np.ndarray:
  """1/2 v' A v for each pair of `hessians` [n, d, d], `differences` [n, d]."""
  return 0.5 * np.einsum('ni,nij,nj->n', differences, hessians, differences)
