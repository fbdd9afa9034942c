"""Random populations have the spectra and the heterogeneity asked for."""

import numpy as np
import pytest

from tff_localupdate.theory import quadratics


def _spectra(num_clients=4, dimension=3, mu=0.5, smoothness=20.0):
  return quadratics.random_spectra(
      3, num_clients=num_clients, dimension=dimension, strong_convexity=mu,
      smoothness=smoothness,
  )


def test_spectra_attain_both_ends():
  for num_clients, dimension in ((1, 2), (2, 1), (5, 4)):
    spectra = _spectra(num_clients, dimension)
    assert spectra.shape == (num_clients, dimension)
    assert spectra.min() == 0.5 and spectra.max() == 20.0
  assert _spectra(1, 1, 2.0, 2.0) == [[2.0]]


def test_population_keeps_the_spectra_and_meets_the_deviations():
  spectrum = np.tile([0.5, 2.0, 20.0], (4, 1))
  largest = quadratics.random_population(
      5, spectrum, center_deviation=1.0
  ).constants.hessian_deviation
  for share in (0.0, 0.1, 0.5, 1.0):
    population = quadratics.random_population(
        5, spectrum, center_deviation=3.0, hessian_deviation=share * largest
    )
    np.testing.assert_allclose(
        np.linalg.eigvalsh(population.hessians), spectrum, rtol=1e-9
    )
    constants = population.constants
    assert constants.center_deviation == pytest.approx(3.0)
    assert constants.hessian_deviation == pytest.approx(
        share * largest, abs=1e-9
    )
  assert largest > 5.0


def test_same_seed_same_population_other_seed_another():
  first, again, other = (
      quadratics.random_population(seed, _spectra(), center_deviation=1.0)
      for seed in (1, 1, 2)
  )
  assert np.array_equal(first.hessians, again.hessians)
  assert np.array_equal(first.centers, again.centers)
  assert not np.allclose(first.centers, other.centers)


def test_examples_keep_the_clients_and_have_the_noise():
  population = quadratics.random_population(1, _spectra(), center_deviation=1.)
  clients = quadratics.random_examples(
      2, population, num_examples=5, hessian_noise=0.7, offset_noise=0.3
  )
  again = quadratics.population_of(clients)
  np.testing.assert_allclose(again.hessians, population.hessians, rtol=1e-9)
  np.testing.assert_allclose(again.centers, population.centers, atol=1e-9)
  for client in clients:
    noise = client.offsets - client.offsets.mean(axis=0)
    assert np.mean(np.sum(noise**2, axis=1)) == pytest.approx(0.3**2)
    root = np.linalg.inv(np.linalg.cholesky(client.hessian))
    relative = root @ client.hessians @ root.T
    size = np.max(np.abs(np.linalg.eigvalsh(relative - np.eye(3))))
    assert size == pytest.approx(0.7)


def test_no_noise_leaves_equal_examples():
  population = quadratics.random_population(1, _spectra(), center_deviation=0.)
  clients = quadratics.random_examples(
      2, population, num_examples=1, hessian_noise=0.0, offset_noise=0.0
  )
  for client, center in zip(clients, population.centers):
    np.testing.assert_allclose(client.centers, [center])


def test_refused():
  with pytest.raises(ValueError, match='hessian_deviation must be between'):
    quadratics.random_population(
        1, np.ones((2, 2)), center_deviation=1.0, hessian_deviation=1.0
    )
  with pytest.raises(ValueError, match='center_deviation must be 0'):
    quadratics.random_population(1, np.ones((1, 2)), center_deviation=1.0)
  with pytest.raises(ValueError, match='smoothness must be strong_convexity'):
    _spectra(1, 1)
  with pytest.raises(ValueError, match='smoothness must be at least'):
    _spectra(mu=2.0, smoothness=1.0)
  with pytest.raises(ValueError, match='spectra must have shape'):
    quadratics.random_population(1, np.ones(3), center_deviation=1.0)
  population = quadratics.random_population(1, _spectra(), center_deviation=1.)
  with pytest.raises(ValueError, match='offset_noise must be 0'):
    quadratics.random_examples(
        2, population, num_examples=1, hessian_noise=0.0, offset_noise=1.0
    )
  with pytest.raises(ValueError, match='hessian_noise'):
    quadratics.random_examples(
        2, population, num_examples=3, hessian_noise=1.0, offset_noise=1.0
    )
