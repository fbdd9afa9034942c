"""Surrogate losses and K-MAML: by value, and by running the algorithm."""

import numpy as np
import pytest

from tests.theory import cases
from tff_localupdate import theta as theta_lib
from tff_localupdate.theory import quadratics
from tff_localupdate.theory import reciprocal
from tff_localupdate.theory import sampling_bias
from tff_localupdate.theory import surrogate

Theta = theta_lib.Theta


def _close(found, expected):
  np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


def test_g3_update_matrix():
  _close(
      surrogate.update_matrices(cases.A1, Theta.ones(4), 0.3),
      [[1.68025, -0.457875], [-0.457875, 2.596]],
  )


def test_g4_update_matrix_of_any_theta():
  _close(
      surrogate.update_matrices(cases.A1, Theta((0.5, 0.0, 2.0)), 0.3),
      [[0.865, -0.33], [-0.33, 1.525]],
  )


def test_g6_surrogate_minimizer_of_ones():
  _close(
      surrogate.surrogate_minimizer(
          cases.spec_population(), Theta.ones(5), 0.2
      ),
      [0.4652507174, 1.2633978199],
  )


def test_g7_surrogate_minimizer_of_single():
  _close(
      surrogate.surrogate_minimizer(
          cases.spec_population(), Theta.single(5), 0.2
      ),
      [0.3964004929, 0.2561735236],
  )


def test_g8_surrogate_loss():
  loss = surrogate.surrogate_loss(
      cases.spec_population(), cases.X, Theta.ones(5), 0.2
  )
  assert loss == pytest.approx(2.86765, abs=1e-9)


def test_g9_surrogate_gradient():
  _close(
      surrogate.surrogate_gradient(
          cases.spec_population(), cases.X, Theta.ones(5), 0.2
      ),
      [2.005525, -0.8943],
  )


def _cases():
  for case in range(cases.NUM_CASES):
    population = cases.random_population(case)
    rng = np.random.default_rng([1, case])
    theta = cases.random_theta(case)
    rate = cases.random_rate(case, population.constants)
    if case % 5 == 0:  # A sequence of rates of the inner loop.
      rate = rate * rng.uniform(0.1, 1.0, theta.num_steps)
    yield population, theta, rate, rng.normal(size=population.dimension)


def test_gradients_and_minimizers_are_those_of_the_algorithm():
  """Theorem 3 on 200 populations; no formula for Q_i is used on the way."""
  for population, theta, rate, x in _cases():
    rates = np.broadcast_to(rate, (theta.num_steps,))
    expected = cases.run_round(population, x, theta.weights, rates)
    scale = max(1.0, np.max(np.abs(expected)))
    np.testing.assert_allclose(
        surrogate.surrogate_gradient(population, x, theta, rate), expected,
        atol=1e-9 * scale, rtol=0,
    )
    minimizer = surrogate.surrogate_minimizer(population, theta, rate)
    root = cases.find_root(population, theta.weights, rates)
    np.testing.assert_allclose(minimizer, root, rtol=1e-6, atol=1e-6)
    # The exact test of a minimizer: the algorithm does not move it.
    still = cases.run_round(population, minimizer, theta.weights, rates)
    spread = np.max(np.abs(surrogate.surrogate_gradients(
        population, minimizer, theta, rate)))
    assert np.max(np.abs(still)) <= 1e-9 * max(spread, 1e-300)


def test_gradient_is_the_derivative_of_the_loss():
  step = 1e-3  # Central differences are exact for quadratics.
  for population, theta, rate, x in _cases():
    gradient = surrogate.surrogate_gradient(population, x, theta, rate)
    for j, row in enumerate(np.eye(population.dimension)):
      ahead, behind = (
          surrogate.surrogate_loss(population, x + s * step * row, theta, rate)
          for s in (1, -1)
      )
      assert (ahead - behind) / (2 * step) == pytest.approx(
          gradient[j], rel=1e-6, abs=1e-9 * (1.0 + abs(ahead) / step)
      )


def test_shift_of_the_minimizer():
  for population, theta, rate, _ in _cases():
    shift = surrogate.minimizer_shift(population, theta, rate)
    minimizer = surrogate.surrogate_minimizer(population, theta, rate)
    np.testing.assert_allclose(
        shift, minimizer - population.minimizer, atol=1e-8, rtol=1e-7
    )


def test_shift_keeps_its_digits_at_tiny_rates():
  population = cases.spec_population()
  tiny, small = (
      surrogate.minimizer_shift(population, Theta.ones(5), rate) / rate
      for rate in (1e-30, 1e-9)
  )
  np.testing.assert_allclose(tiny, small, rtol=1e-6)
  assert np.linalg.norm(tiny) > 0.1


def test_rate_0_and_one_step_keep_the_minimizer():
  population = cases.spec_population()
  for theta, rate in ((Theta((0.5, 0, 2)), 0.0), (Theta.ones(1), 0.3)):
    _close(
        surrogate.surrogate_minimizer(population, theta, rate),
        population.minimizer,
    )
    assert not surrogate.minimizer_shift(population, theta, rate).any()


def test_many_steps_lead_to_the_mean_of_the_centers():
  """Lemma 15."""
  population = cases.spec_population()
  minimizer = surrogate.surrogate_minimizer(population, Theta.ones(2000), 0.3)
  np.testing.assert_allclose(minimizer, population.mean_center, atol=1e-9)


@pytest.mark.parametrize(
    'theta, rate',
    [
        (Theta.ones(4), 0.3),
        (Theta.single(3), 0.2),
        (Theta((0.5, 0.0, 2.0)), 0.3),
        (Theta.ones(3), 0.0),
        (Theta.ones(1), 0.7),
        (Theta((1.0, 2.0, 0.5)), (0.4, 0.1, 0.2)),
    ],
    ids=str,
)
def test_expected_update_by_simulation(theta, rate):
  """E[q] = grad ftilde for draws with replacement, by Monte Carlo.

  10^5 runs of Algorithm 2 with seed 1; every coordinate has to lie in its
  interval of 4 standard errors (99.99 %).
  """
  rng = np.random.default_rng(1)
  roots = rng.normal(size=(5, 2, 2))
  client = quadratics.QuadraticExamples(
      roots @ np.swapaxes(roots, 1, 2) / 2, rng.normal(size=(5, 2))
  )
  batches = rng.integers(0, 5, size=(100_000, theta.num_steps, 2))
  updates = sampling_bias.run_batches(client, cases.X, theta, rate, batches)
  expected = surrogate.surrogate_hessians(client.hessian, theta, rate) @ (
      cases.X - client.center
  )
  errors = updates.std(axis=0) / np.sqrt(len(updates))
  assert np.all(np.abs(updates.mean(axis=0) - expected) <= 4.0 * errors)
  assert np.all(errors < 0.02)


def test_two_clients_of_section_4():
  population = quadratics.QuadraticPopulation([[[1.0]], [[2.0]]],
                                              [[1.0], [0.5]])
  for rate in (0.0, 0.25, 0.5, 1.1):
    _close(
        surrogate.surrogate_minimizer(population, Theta.ones(2), rate),
        [float(reciprocal.surrogate_minimizer(
            reciprocal.TWO_CLIENTS, Theta.ones(2), rate))],
    )
  with pytest.raises(ValueError, match='strictly convex'):
    surrogate.surrogate_minimizer(population, Theta.ones(2), 1.21)


@pytest.mark.parametrize('evaluate', [
    surrogate.surrogate_minimizer,
    surrogate.minimizer_shift,
    surrogate.condition_number,
])
def test_surrogate_losses_without_a_minimum_are_refused(evaluate):
  # Section 4: with z = 1, 2 and two steps, gamma must be below 6/5.
  population = quadratics.QuadraticPopulation(
      np.array([[[1.0]], [[2.0]]]), np.array([[1.0], [0.5]])
  )
  evaluate(population, Theta.ones(2), 1.19)
  with pytest.raises(ValueError, match='client_learning_rate must .* convex'):
    evaluate(population, Theta.ones(2), 1.3)


def test_g25_maml_gradient():
  _close(
      surrogate.maml_gradient(cases.A1, [1.0, 0.0], cases.X, 0.1, 2),
      [0.086340625, 0.60554375],
  )


def test_theorem_4_maml_by_its_definition():
  """The gradient of f_i(X_K(x)) by central differences, exact here."""
  population = cases.spec_population()
  hessian, center = population.hessians[0], population.centers[0]

  def objective(x, num_steps, rate):
    for _ in range(num_steps):
      x = x - rate * hessian @ (x - center)
    return 0.5 * (x - center) @ hessian @ (x - center)

  for num_steps, rate in ((1, 0.3), (2, 0.1), (3, 0.45)):
    numeric = [
        objective(cases.X + row, num_steps, rate)
        - objective(cases.X - row, num_steps, rate)
        for row in np.eye(2) / 2
    ]
    _close(
        surrogate.maml_gradient(hessian, center, cases.X, rate, num_steps),
        numeric,
    )
    identity = cases.run_inner_loop(
        hessian, center, cases.X, surrogate.maml_theta(num_steps).weights,
        [rate] * (2 * num_steps + 1),
    )
    _close(numeric, identity)
