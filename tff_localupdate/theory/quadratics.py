"""Quadratic losses: examples, clients made of them, populations of clients.

Everything that the theory says is about clients i ~ P with

    f_i(x) = 1/2 (x - c_i)' A_i (x - c_i) + tau_i,    f = E f_i

A client is either given by its examples (`QuadraticExamples`), whose mean it
is, or by A_i and c_i alone (`QuadraticPopulation`): Lemma 1 leads from one to
the other, and tau_i is dropped. The bounds see only four numbers of a
population, its `PopulationConstants`. At the end, random populations of given
spectra and heterogeneity, to put the bounds to the test.

Source: Charles and Konecny (2020), Lemma 1, Assumptions 2 and 3.
"""

from collections.abc import Sequence
import dataclasses
from typing import Optional

import numpy as np

from tff_localupdate import arguments

# How far the two triangles of a Hessian may differ, relative to its largest
# entry.
_SYMMETRY_TOLERANCE = 1e-9
# As many as halve an interval down to the last digit of a float.
_BISECTIONS = 60


@dataclasses.dataclass(frozen=True)
class PopulationConstants:
  """Spectrum and heterogeneity of a population of quadratic losses.

  With A_i and c_i the Hessian and the minimizer of client i, A and c their
  means over the population, I the identity:

      mu I <= A_i <= L I                  for all i      (Assumption 2)
      E ||A_i - A||^2 <= sigma_A^2        spectral norm  (Assumption 3)
      E ||c_i - c||^2 <= sigma_c^2

  Raises ValueError if a number is out of its range.

  Attributes:
    strong_convexity: mu, positive.
    smoothness: L, at least mu.
    hessian_deviation: sigma_A, not negative.
    center_deviation: sigma_c, not negative.
  """

  strong_convexity: float
  smoothness: float
  hessian_deviation: float = 0.0
  center_deviation: float = 0.0

  def __post_init__(self) -> None:
    check_spectrum(self.strong_convexity, self.smoothness)
    arguments.check_not_negative('hessian_deviation', self.hessian_deviation)
    arguments.check_not_negative('center_deviation', self.center_deviation)

  @property
  def condition_number(self) -> float:
    """kappa = L/mu."""
    return self.smoothness / self.strong_convexity

  @property
  def heterogeneity(self) -> float:
    """sigma_c (1 + sigma_A/mu), of which most bounds are multiples."""
    return self.center_deviation * (
        1.0 + self.hessian_deviation / self.strong_convexity
    )


def check_spectrum(strong_convexity: float, smoothness: float) -> None:
  """Raises ValueError unless 0 < mu <= L."""
  arguments.check_positive('strong_convexity', strong_convexity)
  arguments.check_positive('smoothness', smoothness)
  if smoothness < strong_convexity:
    raise ValueError(
        f'smoothness must be at least strong_convexity, {strong_convexity}, '
        f'found {smoothness}.'
    )


def check_below_inverse(
    client_learning_rate: float, smoothness: float, factor: float = 1.0
) -> None:
  """Raises ValueError unless 0 <= gamma < 1/(`factor` L)."""
  arguments.check_not_negative('client_learning_rate', client_learning_rate)
  if factor * smoothness * client_learning_rate >= 1.0:
    raise ValueError(
        'client_learning_rate must be below '
        f'{1.0 / (factor * smoothness)}, 1/({factor:g} * smoothness), found '
        f'{client_learning_rate}.'
    )


@dataclasses.dataclass(frozen=True, eq=False)
class QuadraticExamples:
  """One client: finitely many examples z, all equally likely under D_i.

      f(x; z) = 1/2 (x - c_z)' A_z (x - c_z)

  `hessians` are A_z, float64 [n, d, d], symmetric, `centers` c_z, float64
  [n, d]; ValueError if shapes do not fit or a number is not finite.

  Departures: the paper asks every A_z to be positive definite. Here only their
  mean has to be, which `population_of` checks.
  """

  hessians: np.ndarray
  centers: np.ndarray

  def __post_init__(self) -> None:
    _set_checked(self)

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

  Raises ValueError if shapes do not fit or an array is not valid.

  Attributes:
    hessians: A_i, float64 [N, d, d], symmetric positive definite.
    centers: c_i, float64 [N, d].
    probabilities: P, float64 [N], positive with sum 1; None is uniform.
  """

  hessians: np.ndarray
  centers: np.ndarray
  probabilities: Optional[np.ndarray] = None

  def __post_init__(self) -> None:
    _set_checked(self)
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
  def constants(self) -> PopulationConstants:
    """The smallest constants that Assumptions 2 and 3 admit."""
    eigenvalues = np.linalg.eigvalsh(self.hessians)
    norms = np.linalg.norm(self.hessians - self.mean_hessian, 2, axis=(1, 2))
    deviations = np.sum((self.centers - self.mean_center) ** 2, axis=1)
    return PopulationConstants(
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

  A_i and c_i are those of Lemma 1; `probabilities` are P, [N], None is uniform.
  Raises ValueError as `QuadraticPopulation`.
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
  """Returns `matrices`, [..., d, d], in float64 and exactly symmetric.

  Raises ValueError for what is not square, finite, symmetric up to rounding.
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


def _set_checked(owner: object) -> None:
  """Replaces `hessians` and `centers` by checked float64 arrays."""
  hessians = checked_matrices('hessians', owner.hessians)
  centers = np.asarray(owner.centers, np.float64)
  if hessians.ndim != 3 or hessians.size == 0:
    raise ValueError(
        'hessians must have shape [n, d, d] with n, d >= 1, found '
        f'{hessians.shape}.'
    )
  if centers.shape != hessians.shape[:2]:
    raise ValueError(
        f'centers must have shape {hessians.shape[:2]}, found {centers.shape}.'
    )
  if not np.all(np.isfinite(centers)):
    raise ValueError(f'centers must be finite, found {centers}.')
  object.__setattr__(owner, 'hessians', hessians)
  object.__setattr__(owner, 'centers', centers)


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


# Random populations.


def random_spectra(
    seed: int,
    *,
    num_clients: int,
    dimension: int,
    strong_convexity: float,
    smoothness: float,
) -> np.ndarray:
  """Returns eigenvalues for each client, in [mu, L], both ends attained.

  They are float64 [N, d], uniform in their logarithm. If N = d = 1, L has to be
  mu; ValueError if an argument is out of its range.
  """
  arguments.check_count('num_clients', num_clients)
  arguments.check_count('dimension', dimension)
  check_spectrum(strong_convexity, smoothness)
  if num_clients * dimension == 1 and smoothness != strong_convexity:
    raise ValueError(
        f'smoothness must be strong_convexity, {strong_convexity}, for a '
        f'single eigenvalue, found {smoothness}.'
    )
  # Uniform in the logarithm; then the extremes are moved to the ends, so that
  # mu and L are the smallest constants, not just admissible ones.
  uniform = np.random.default_rng(seed).random((num_clients, dimension))
  spectra = strong_convexity * (smoothness / strong_convexity) ** uniform
  spectra.flat[np.argmin(spectra)] = strong_convexity
  spectra.flat[np.argmax(spectra)] = smoothness
  return spectra


def random_population(
    seed: int,
    spectra: np.ndarray,
    *,
    center_deviation: float,
    hessian_deviation: Optional[float] = None,
) -> QuadraticPopulation:
  """Draws a population, each client equally likely.

      A_i = U_i(s) diag(spectrum of client i) U_i(s)'

  The rotations U_i(s) are the same for all clients at s = 0 and random ones,
  independent of each other, at s = 1. The eigenvalues of each A_i are
  `spectra`, [N, d], positive. Both deviations, sigma_c and sigma_A, are met,
  the latter by the choice of s; None is s = 1. Raises ValueError if rotations
  do not reach sigma_A, if N = 1 and sigma_c > 0, or for an invalid argument.
  """
  spectra = np.asarray(spectra, np.float64)
  if spectra.ndim != 2 or spectra.size == 0:
    raise ValueError(
        f'spectra must have shape [N, d], found {spectra.shape}.'
    )
  arguments.check_not_negative('center_deviation', center_deviation)
  rng = np.random.default_rng(seed)
  centers = _random_centers(rng, *spectra.shape, center_deviation)
  rotate = _random_rotations(rng, *spectra.shape)

  def population_at(turn):
    frames = rotate(turn)
    hessians = (frames * spectra[:, np.newaxis, :]) @ np.swapaxes(frames, 1, 2)
    return QuadraticPopulation(hessians, centers)

  if hessian_deviation is None:
    return population_at(1.0)
  return population_at(_find_turn(population_at, hessian_deviation))


def random_examples(
    seed: int,
    population: QuadraticPopulation,
    *,
    num_examples: int,
    hessian_noise: float,
    offset_noise: float,
) -> list[QuadraticExamples]:
  """Splits every client into n examples that keep its A_i and c_i.

      A_z = R_i (I + E_z) R_i,   R_i = A_i^{1/2},   mean_z E_z = 0
      A_z c_z = A_i c_i + e_z,                      mean_z e_z = 0

  `hessian_noise` is the largest spectral norm of the E_z, in [0, 1), so that
  all A_z are positive definite, `offset_noise` the root of mean_z ||e_z||^2.
  Both are 0 if n = 1; ValueError if an argument is out of its range.
  """
  arguments.check_count('num_examples', num_examples)
  arguments.check_decay('hessian_noise', hessian_noise)
  arguments.check_not_negative('offset_noise', offset_noise)
  rng = np.random.default_rng(seed)
  dimension = population.dimension
  clients = []
  for hessian, center in zip(population.hessians, population.centers):
    noise = rng.normal(size=(num_examples, dimension, dimension))
    noise = _centered(noise + np.swapaxes(noise, 1, 2), 'hessian_noise',
                      hessian_noise)
    # E_z of mean 0 between two factors R_i: the A_z keep the mean A_i, and stay
    # positive definite as long as all ||E_z|| < 1. The offsets A_z c_z, not the
    # c_z, have the mean A_i c_i that Lemma 1 asks for.
    noise *= hessian_noise / _size(np.linalg.norm(noise, 2, axis=(1, 2)).max())
    values, vectors = np.linalg.eigh(hessian)
    root = (vectors * np.sqrt(values)) @ vectors.T
    hessians = root @ (np.eye(dimension) + noise) @ root
    shifts = _centered(rng.normal(size=(num_examples, dimension)),
                       'offset_noise', offset_noise)
    shifts *= offset_noise / _size(np.sqrt(np.mean(np.sum(shifts**2, axis=1))))
    offsets = hessian @ center + shifts
    centers = np.linalg.solve(hessians, offsets[..., np.newaxis])[..., 0]
    clients.append(QuadraticExamples(hessians, centers))
  return clients


def _random_centers(rng, num_clients, dimension, center_deviation):
  """Returns centers of the given deviation about a random mean."""
  mean = rng.normal(size=dimension)
  deviations = _centered(rng.normal(size=(num_clients, dimension)),
                         'center_deviation', center_deviation)
  deviation = np.sqrt(np.mean(np.sum(deviations**2, axis=1)))
  return mean + deviations * (center_deviation / _size(deviation))


def _centered(values, name, deviation):
  """Returns `values` with mean 0, which for one of them leaves nothing."""
  if len(values) == 1 and deviation > 0.0:
    raise ValueError(f'{name} must be 0 for one of a kind, found {deviation}.')
  return values - values.mean(axis=0)


def _size(norm):
  """The norm to divide by; 0 stays 0."""
  return norm if norm > 0.0 else 1.0


def _random_rotations(rng, num_clients, dimension):
  """Returns the function s -> U_i(s), [N, d, d], continuous in s."""
  base, _ = np.linalg.qr(rng.normal(size=(dimension, dimension)))
  skew = rng.normal(size=(num_clients, dimension, dimension))
  skew = skew - np.swapaxes(skew, 1, 2)
  # exp(s S) of a skew S is a rotation, on its way from I as s grows. i S is
  # Hermitian with eigenvalues a_j, so exp(s S) has exp(-i s a_j).
  angles, vectors = np.linalg.eigh(1j * skew)
  largest = np.max(np.abs(angles), axis=1, keepdims=True)
  # Quarter turns at s = 1; beyond them the frames turn back to where they were,
  # and sigma_A would not grow with s any more.
  angles = angles * (np.pi / 2.0) / np.where(largest > 0.0, largest, 1.0)

  def rotate(turn):
    phases = np.exp(-1j * turn * angles)[:, np.newaxis, :]
    turned = (vectors * phases) @ np.conj(np.swapaxes(vectors, 1, 2))
    return turned.real @ base

  return rotate


def _find_turn(population_at, hessian_deviation):
  """Returns s with sigma_A(s) = `hessian_deviation`, by bisection.

  What grows with s is how far apart the clients' eigenvectors are.
  """
  arguments.check_not_negative('hessian_deviation', hessian_deviation)
  low, high = 0.0, 1.0
  least, most = (
      population_at(turn).constants.hessian_deviation for turn in (low, high)
  )
  slack = 1e-12 * max(1.0, most)
  if not least - slack <= hessian_deviation <= most + slack:
    raise ValueError(
        f'hessian_deviation must be between {least} and {most}, which the '
        f'rotations reach, found {hessian_deviation}.'
    )
  for _ in range(_BISECTIONS):
    middle = (low + high) / 2.0
    found = population_at(middle).constants.hessian_deviation
    low, high = (middle, high) if found < hessian_deviation else (low, middle)
  return high
