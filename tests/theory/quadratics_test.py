"""Clients and populations: constants, what follows from them, random ones."""

import math

import numpy as np
import pytest

from tests.theory import cases
from tff_localupdate.theory import quadratics


def test_derived_numbers():
  constants = quadratics.PopulationConstants(0.5, 3.0, 1.0, 2.0)
  assert constants.condition_number == 6.0
  assert constants.heterogeneity == 2.0 * (1.0 + 1.0 / 0.5)


@pytest.mark.parametrize(
    'arguments, name',
    [
        ((0.0, 1.0), 'strong_convexity'),
        ((-1.0, 1.0), 'strong_convexity'),
        ((math.nan, 1.0), 'strong_convexity'),
        ((1.0, math.inf), 'smoothness'),
        ((2.0, 1.0), 'smoothness'),
        ((1.0, 2.0, -1.0), 'hessian_deviation'),
        ((1.0, 2.0, 0.0, math.nan), 'center_deviation'),
    ],
)
def test_constants_out_of_range_are_refused(arguments, name):
  with pytest.raises(ValueError, match=name):
    quadratics.PopulationConstants(*arguments)


def test_rate_must_be_below_the_inverse():
  quadratics.check_below_inverse(0.24, 2.0, factor=2.0)
  with pytest.raises(ValueError, match='client_learning_rate must be below'):
    quadratics.check_below_inverse(0.25, 2.0, factor=2.0)
  with pytest.raises(ValueError, match='client_learning_rate'):
    quadratics.check_below_inverse(-0.1, 2.0)


def test_g5_minimizer():
  np.testing.assert_allclose(
      cases.spec_population().minimizer, [19 / 47, 74 / 47], rtol=1e-12
  )


def test_g11_deviations():
  constants = cases.spec_population().constants
  assert constants.hessian_deviation == pytest.approx(1.0405694150, abs=1e-9)
  assert constants.center_deviation == pytest.approx(1.1180339887, abs=1e-9)
  assert constants.strong_convexity == pytest.approx((3 - 2**0.5) / 2)
  assert constants.smoothness == pytest.approx(3.0)


def test_assumptions_hold_with_equality_on_random_populations():
  for case in range(cases.NUM_CASES):
    population = cases.random_population(case)
    constants = population.constants
    mean = population.mean_hessian
    squares = [
        np.max(np.abs(np.linalg.eigvalsh(hessian - mean))) ** 2
        for hessian in population.hessians
    ]
    assert constants.hessian_deviation**2 == pytest.approx(
        np.average(squares, weights=population.probabilities)
    )
    deviations = population.centers - population.mean_center
    assert constants.center_deviation**2 == pytest.approx(
        np.average(
            np.linalg.norm(deviations, axis=1) ** 2,
            weights=population.probabilities,
        )
    )
    np.testing.assert_allclose(
        population.minimizer, cases.find_root(population, [1.0], [0.0]),
        atol=1e-9,
    )


def _random_client(seed, num_examples=4, dimension=3):
  rng = np.random.default_rng(seed)
  roots = rng.normal(size=(num_examples, dimension, dimension))
  hessians = roots @ np.swapaxes(roots, 1, 2) + 0.1 * np.eye(dimension)
  return quadratics.QuadraticExamples(
      hessians, rng.normal(size=(num_examples, dimension))
  )


def test_lemma_1():
  for seed in range(20):
    client = _random_client(seed)
    x = np.random.default_rng(100 + seed).normal(size=3)
    single = [
        0.5 * (x - c) @ a @ (x - c)
        for a, c in zip(client.hessians, client.centers)
    ]
    assert client.loss(x) == pytest.approx(np.mean(single))
    difference = x - client.center
    assert client.loss(x) == pytest.approx(
        0.5 * difference @ client.hessian @ difference + client.least_loss
    )
    np.testing.assert_allclose(
        client.gradients(x).mean(axis=0), client.hessian @ difference
    )


def test_population_of_examples():
  clients = [_random_client(seed) for seed in range(3)]
  population = quadratics.population_of(clients, [0.5, 0.25, 0.25])
  x = np.array([0.3, -1.0, 2.0])
  expected = [client.loss(x) - client.least_loss for client in clients]
  np.testing.assert_allclose(population.losses(x), expected)
  assert population.loss(x) == pytest.approx(
      np.dot([0.5, 0.25, 0.25], expected)
  )
  np.testing.assert_allclose(
      population.mean(population.gradients(population.minimizer)), 0,
      atol=1e-12,
  )
  again = quadratics.population_of(
      quadratics.examples_of(population), population.probabilities
  )
  np.testing.assert_allclose(again.centers, population.centers)
  assert (again.num_clients, again.dimension) == (3, 3)


@pytest.mark.parametrize(
    'fields, message',
    [
        (([[1.0]], [[0.0]]), 'hessians must have shape'),
        (([[[1.0]]], [[0.0, 0.0]]), 'centers must have shape'),
        (([[[np.nan]]], [[0.0]]), 'hessians must be finite'),
        (([[[1.0]]], [[np.inf]]), 'centers must be finite'),
        (([[[1.0, 0.5], [0.0, 1.0]]], [[0.0, 0.0]]), 'symmetric'),
        (([[[-1.0]]], [[0.0]]), 'positive definite'),
        (([[[1.0]]], [[0.0]], [0.5]), 'sum 1'),
        (([[[1.0]]], [[0.0]], [0.5, 0.5]), 'probabilities must have shape'),
        (([[[1.0]]] * 2, [[0.0]] * 2, [0.0, 1.0]), 'positive'),
    ],
)
def test_refused(fields, message):
  with pytest.raises(ValueError, match=message):
    quadratics.QuadraticPopulation(*fields)


def test_each_hessian_is_symmetric_beside_its_own_size():
  hessians = np.stack([1e9 * np.eye(2), [[1.0, 0.9], [0.0, 1.0]]])
  with pytest.raises(ValueError, match='hessians must be symmetric'):
    quadratics.QuadraticPopulation(hessians, np.zeros((2, 2)))


def test_clients_with_a_singular_mean_hessian_are_refused():
  flat = quadratics.QuadraticExamples(
      np.array([[[1.0, 0.0], [0.0, 0.0]]]), np.zeros((1, 2))
  )
  with pytest.raises(ValueError, match='hessians must be positive definite'):
    quadratics.population_of([flat])


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


def test_random_populations_out_of_range_are_refused():
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
