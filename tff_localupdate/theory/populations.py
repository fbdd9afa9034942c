"""Random quadratic populations of given spectra and heterogeneity."""

from typing import Optional

import numpy as np

from tff_localupdate import arguments
from tff_localupdate.theory import quadratics

_BISECTIONS = 60


def random_spectra(
    seed: int,
    *,
    num_clients: int,
    dimension: int,
    strong_convexity: float,
    smoothness: float,
) -> np.ndarray:
  """Returns eigenvalues for each client, in [mu, L], both ends attained.

  Args:
    seed: Of the draw.
    num_clients: N.
    dimension: d.
    strong_convexity: mu, positive.
    smoothness: L, at least mu; equal to it if N = d = 1.

  Returns:
    The eigenvalues, float64 [N, d], uniform in their logarithm.

  Raises:
    ValueError: If an argument is out of its range.
  """
  arguments.check_count('num_clients', num_clients)
  arguments.check_count('dimension', dimension)
  arguments.check_positive('strong_convexity', strong_convexity)
  if not smoothness >= strong_convexity:
    raise ValueError(
        f'smoothness must be at least strong_convexity, {strong_convexity}, '
        f'found {smoothness}.'
    )
  if num_clients * dimension == 1 and smoothness != strong_convexity:
    raise ValueError(
        f'smoothness must be strong_convexity, {strong_convexity}, for a '
        f'single eigenvalue, found {smoothness}.'
    )
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
) -> quadratics.QuadraticPopulation:
  """Draws a population, each client equally likely.

      A_i = U_i(s) diag(spectrum of client i) U_i(s)'

  The rotations U_i(s) are the same for all clients at s = 0 and random ones,
  independent of each other, at s = 1.

  Args:
    seed: Of the draw.
    spectra: The eigenvalues of each A_i, positive, [N, d]; they are kept.
    center_deviation: sigma_c, which is met; 0 if N = 1.
    hessian_deviation: sigma_A, which is met by the choice of s; None is s = 1.

  Returns:
    The population.

  Raises:
    ValueError: If sigma_A cannot be reached by rotations, or another argument
      is out of its range.
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
    return quadratics.QuadraticPopulation(hessians, centers)

  if hessian_deviation is None:
    return population_at(1.0)
  return population_at(_find_turn(population_at, hessian_deviation))


def random_examples(
    seed: int,
    population: quadratics.QuadraticPopulation,
    *,
    num_examples: int,
    hessian_noise: float,
    offset_noise: float,
) -> list[quadratics.QuadraticExamples]:
  """Splits every client into examples that keep its A_i and c_i.

      A_z = R_i (I + E_z) R_i,   R_i = A_i^{1/2},   mean_z E_z = 0
      A_z c_z = A_i c_i + e_z,                      mean_z e_z = 0

  Args:
    seed: Of the draw.
    population: The clients.
    num_examples: n, of each client.
    hessian_noise: The largest spectral norm of the E_z, in [0, 1), so that all
      A_z are positive definite; 0 if n = 1.
    offset_noise: The root of mean_z ||e_z||^2; 0 if n = 1.

  Returns:
    The clients.

  Raises:
    ValueError: If an argument is out of its range.
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
    noise *= hessian_noise / _size(np.linalg.norm(noise, 2, axis=(1, 2)).max())
    values, vectors = np.linalg.eigh(hessian)
    root = (vectors * np.sqrt(values)) @ vectors.T
    hessians = root @ (np.eye(dimension) + noise) @ root
    shifts = _centered(rng.normal(size=(num_examples, dimension)),
                       'offset_noise', offset_noise)
    shifts *= offset_noise / _size(np.sqrt(np.mean(np.sum(shifts**2, axis=1))))
    offsets = hessian @ center + shifts
    centers = np.linalg.solve(hessians, offsets[..., np.newaxis])[..., 0]
    clients.append(quadratics.QuadraticExamples(hessians, centers))
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
  """A norm to divide by; what is 0 is to stay 0."""
  return norm if norm > 0.0 else 1.0


def _random_rotations(rng, num_clients, dimension):
  """Returns the function s -> U_i(s), [N, d, d], continuous in s."""
  base, _ = np.linalg.qr(rng.normal(size=(dimension, dimension)))
  skew = rng.normal(size=(num_clients, dimension, dimension))
  skew = skew - np.swapaxes(skew, 1, 2)
  # Hermitian, with the eigenvalues of the rotation's generator.
  angles, vectors = np.linalg.eigh(1j * skew)
  largest = np.max(np.abs(angles), axis=1, keepdims=True)
  # Quarter turns at s = 1; more would come back.
  angles = angles * (np.pi / 2.0) / np.where(largest > 0.0, largest, 1.0)

  def rotate(turn):
    phases = np.exp(-1j * turn * angles)[:, np.newaxis, :]
    turned = (vectors * phases) @ np.conj(np.swapaxes(vectors, 1, 2))
    return turned.real @ base

  return rotate


def _find_turn(population_at, hessian_deviation):
  """Returns s with sigma_A(s) = `hessian_deviation`, by bisection."""
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
