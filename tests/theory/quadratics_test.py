"""Quadratic populations: x*, constants, Lemma 1, and what is refused."""

import numpy as np
import pytest

from tests.theory import cases
from tff_localupdate.theory import quadratics


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
