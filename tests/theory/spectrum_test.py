"""Section 5: phi and the spectra, by value and against eigenvalues."""

import fractions

import numpy as np
import pytest

from tests.theory import cases
from tff_localupdate import theta as theta_lib
from tff_localupdate.theory import spectrum
from tff_localupdate.theory import surrogate

Fraction = fractions.Fraction


def _exact_phi(num_steps, eigenvalue, rate):
  """phi in exact fractions."""
  ratio = 1 - Fraction(rate) * Fraction(eigenvalue)
  if ratio == 1:
    return num_steps * Fraction(eigenvalue)
  return (1 - ratio**num_steps) / Fraction(rate)


def test_g1_phi():
  assert spectrum.phi(10, 2.0, 0.1) == pytest.approx(8.9262581760, abs=1e-9)


def test_g2_phi_at_a_tiny_rate():
  assert spectrum.phi(10, 0.5, 1e-12) == pytest.approx(
      4.9999999999888, abs=1e-12
  )
  naive = (1.0 - (1.0 - 1e-12 * 0.5) ** 10) / 1e-12
  assert abs(naive - 5.0) > 1e-4


@pytest.mark.parametrize('num_steps', [1, 2, 3, 10, 101, 1000])
def test_phi_is_exact_at_any_rate(num_steps):
  for product in (
      0.0, 5e-324, 1e-308, 1e-200, 1e-17, 1e-8, 0.3, 0.999999, 1.0, 1.0000001,
      1.5, 1.9999999, 2.0, 2.0000001, 2.5,
  ):
    found = float(spectrum.phi(num_steps, 0.5, 2.0 * product))
    expected = _exact_phi(num_steps, 0.5, 2.0 * product)
    # Near 2 an even power cancels: what counts is a rounding of the product.
    error = abs(Fraction(found) - expected)
    scale = max(abs(expected), num_steps * abs(1 - product) ** num_steps)
    assert error <= 1e-12 * scale, (product, found)


def test_phi_broadcasts_and_its_limits():
  found = spectrum.phi(3, [[1.0], [2.0]], [0.0, 0.25, 0.5])
  assert found.shape == (2, 3)
  np.testing.assert_allclose(found[:, 0], [3.0, 6.0])
  assert found[1, 2] == 2.0  # gamma lam = 1: 1/gamma
  assert spectrum.phi(4, 0.0, 0.3) == 0.0


def test_phi_is_monotone_and_below_the_inverse_rate():
  rates = np.linspace(1e-6, 1.0, 400)
  values = spectrum.phi(7, 1.0, rates)
  assert np.all(np.diff(values) < 0.0) and np.all(values <= 1.0 / rates)
  assert np.all(np.diff(spectrum.phi(7, np.linspace(0, 1, 400), 0.9)) > 0.0)


def test_phi_difference_is_exact():
  for first, second in ((0.0, 0.3), (0.1, 0.1 + 1e-12), (0.0, 1e-15)):
    exact = _exact_phi(6, 3.0, first) - _exact_phi(6, 3.0, second)
    found = spectrum.phi_difference(6, 3.0, first, second)
    assert found == pytest.approx(float(exact), rel=1e-3)
    if second - first > 1e-3:
      assert found == pytest.approx(float(exact), rel=1e-12)
  assert spectrum.phi_difference(1, 3.0, 0.0, 0.3) == 0.0


def test_eigenvalues_of_update_matrices_on_random_populations():
  """Lemmas 6, 10: they are functions of those of A_i, vectors are kept."""
  for case in range(cases.NUM_CASES):
    population = cases.random_population(case)
    theta = cases.random_theta(case)
    rate = cases.random_rate(case, population.constants)
    eigenvalues, vectors = np.linalg.eigh(population.hessians)
    factors = spectrum.update_eigenvalues(eigenvalues, theta, rate)
    for i, hessian in enumerate(population.hessians):
      # Q_i A_i column by column, by running the inner loop from c_i + e_j.
      product = np.array([
          cases.run_inner_loop(
              hessian, 0.0, row, theta.weights, [rate] * theta.num_steps
          )
          for row in np.eye(population.dimension)
      ]).T
      np.testing.assert_allclose(
          product @ vectors[i], eigenvalues[i] * factors[i] * vectors[i],
          atol=1e-9 * theta.sum * eigenvalues[i].max(),
      )


def test_bounds_of_lemmas_6_to_12_on_random_populations():
  for case in range(cases.NUM_CASES):
    population = cases.random_population(case)
    constants = population.constants
    theta = cases.random_theta(case)
    rate = cases.random_rate(case, constants)
    ends = (constants.strong_convexity, constants.smoothness)
    matrices = surrogate.update_matrices(population.hessians, theta, rate)
    # Both ends of the spectrum are attained, and so are these bounds.
    _assert_within(
        spectrum.update_bounds(theta, *ends, rate), matrices, attained=True
    )
    hessians = surrogate.surrogate_hessians(population.hessians, theta, rate)
    is_single = theta.weights[:-1] == (0.0,) * (theta.num_steps - 1)
    is_ones = case % 3 == 0
    _assert_within(
        spectrum.surrogate_bounds(theta, *ends, rate),
        hessians,
        attained=is_ones
        or (is_single and rate * ends[1] * theta.num_steps < 1.0),
    )


def _assert_within(bounds, matrices, *, attained):
  """Checks eigenvalues, up to what rounding the matrices does to them."""
  eigenvalues = np.linalg.eigvalsh(matrices)
  slack = 1e-9 * eigenvalues.max()
  assert 0.0 < bounds[0] <= eigenvalues.min() + slack
  assert eigenvalues.max() - slack <= bounds[1]
  if attained:
    assert bounds == pytest.approx(
        (eigenvalues.min(), eigenvalues.max()), abs=slack
    )


def test_lemmas_7_and_8_by_their_formulas():
  mu, smoothness, rate = 0.5, 3.0, 0.2
  lower, upper = spectrum.update_bounds(
      theta_lib.Theta.single(5), mu, smoothness, rate
  )
  assert lower == pytest.approx((1 - 0.6) ** 4)
  assert upper == pytest.approx((1 - 0.1) ** 4)
  lower, upper = spectrum.update_bounds(
      theta_lib.Theta.ones(5), mu, smoothness, rate
  )
  assert lower == pytest.approx(spectrum.phi(5, smoothness, rate) / smoothness)
  assert upper == pytest.approx(spectrum.phi(5, mu, rate) / mu)


def test_g10_corollary_13():
  bound = spectrum.condition_number_bound
  ones, single = theta_lib.Theta.ones(5), theta_lib.Theta.single(5)
  assert bound(ones, 0.5, 3.0, 0.2) == pytest.approx(2.4169373153, abs=1e-9)
  assert bound(single, 0.5, 3.0, 0.05) == pytest.approx(
      3.4658398464, abs=1e-9
  )


def test_corollary_13_on_random_populations():
  for case in range(cases.NUM_CASES):
    population = cases.random_population(case)
    constants = population.constants
    theta = cases.random_theta(case)
    rate = cases.random_rate(case, constants)
    bound = spectrum.condition_number_bound(
        theta, constants.strong_convexity, constants.smoothness, rate
    )
    found = surrogate.condition_number(population, theta, rate)
    assert found <= bound * (1.0 + 1e-9)
    if case % 3 == 0:
      assert bound <= constants.condition_number * (1.0 + 1e-9)


def test_scaled_ones_have_the_spectrum_of_ones_scaled():
  scaled = spectrum.surrogate_bounds(
      theta_lib.Theta((2.5,) * 4), 0.5, 3.0, 0.2
  )
  plain = spectrum.surrogate_bounds(theta_lib.Theta.ones(4), 0.5, 3.0, 0.2)
  assert scaled == pytest.approx((2.5 * plain[0], 2.5 * plain[1]))


def test_sequence_of_rates():
  theta = theta_lib.Theta((0.5, 0.0, 2.0))
  found = spectrum.update_eigenvalues([1.0, 2.0], theta, [0.1, 0.2, 9.0])
  np.testing.assert_allclose(found, [0.5 + 2 * 0.9 * 0.8, 0.5 + 2 * 0.8 * 0.6])
  with pytest.raises(ValueError, match='a sequence of 3 numbers'):
    spectrum.update_eigenvalues([1.0], theta, [0.1, 0.2])
  with pytest.raises(ValueError, match='client_learning_rate must be finite'):
    spectrum.update_eigenvalues([1.0], theta, [0.1, -0.2, 0.1])


def test_refused():
  theta = theta_lib.Theta.ones(2)
  with pytest.raises(ValueError, match='client_learning_rate must be below'):
    spectrum.update_bounds(theta, 0.5, 2.0, 0.5)
  with pytest.raises(ValueError, match='smoothness'):
    spectrum.surrogate_bounds(theta, 3.0, 2.0, 0.1)
  with pytest.raises(ValueError, match='num_steps'):
    spectrum.phi(0, 1.0, 0.1)
  with pytest.raises(ValueError, match='eigenvalue'):
    spectrum.phi(2, -1.0, 0.1)
  with pytest.raises(ValueError, match='first_rate'):
    spectrum.phi_difference(2, 1.0, 0.2, 0.1)


def test_condition_number_bound_where_the_lower_end_underflows():
  bound = spectrum.condition_number_bound(
      theta_lib.Theta.single(30), 0.5, 3.0, (1 - 1e-15) / 3
  )
  assert bound == np.inf
