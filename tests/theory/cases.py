"""What the tests of the theory share: the spec's clients, random cases.

Everything that is expected of the theory is computed here by other means than
the theory's: by running Algorithm 2 with full gradients, step by step.
"""

import numpy as np

from tff_localupdate import theta as theta_lib
from tff_localupdate.theory import quadratics

A1 = np.array([[2.0, 0.5], [0.5, 1.0]])
A2 = np.diag([1.0, 3.0])
X = np.array([1.0, 1.0])

NUM_CASES = 200


def spec_population():
  """The two clients of the test values G5 to G11."""
  return quadratics.QuadraticPopulation([A1, A2], [[1.0, 0.0], [0.0, 2.0]])


def run_inner_loop(hessian, center, x, weights, rates):
  """Returns q of Algorithm 2 with full gradients."""
  point = np.array(x, float)
  update = np.zeros_like(point)
  for weight, rate in zip(weights, rates):
    gradient = hessian @ (point - center)
    update = update + weight * gradient
    point = point - rate * gradient
  return update


def run_round(population, x, weights, rates):
  """Returns the mean of q over the population."""
  return sum(
      probability * run_inner_loop(hessian, center, x, weights, rates)
      for probability, hessian, center in zip(
          population.probabilities, population.hessians, population.centers
      )
  )


def find_root(population, weights, rates):
  """Returns where the mean update is 0; it is affine in the point."""
  origin = np.zeros(population.dimension)
  offset = run_round(population, origin, weights, rates)
  columns = [
      run_round(population, row, weights, rates) - offset
      for row in np.eye(population.dimension)
  ]
  return np.linalg.solve(np.array(columns).T, -offset)


def random_population(case):
  """Returns a population of 2 to 6 clients in 1 to 4 dimensions."""
  rng = np.random.default_rng([7, case])
  mu = 10.0 ** rng.uniform(-1.0, 0.5)
  spectra = quadratics.random_spectra(
      case,
      num_clients=int(rng.integers(2, 7)),
      dimension=int(rng.integers(1, 5)),
      strong_convexity=mu,
      smoothness=mu * 10.0 ** rng.uniform(0.0, 1.5),
  )
  population = quadratics.random_population(
      case, spectra, center_deviation=10.0 ** rng.uniform(-1.0, 1.0)
  )
  if case % 2:
    return population
  # Half of the cases with unequal probabilities.
  probabilities = rng.uniform(0.1, 1.0, population.num_clients)
  return quadratics.QuadraticPopulation(
      population.hessians,
      population.centers,
      probabilities / probabilities.sum(),
  )


def random_theta(case):
  """Returns Theta_K, Theta_{1:K} or any weights, by turns."""
  rng = np.random.default_rng([8, case])
  num_steps = int(rng.integers(1, 13))
  if case % 3 == 0:
    return theta_lib.Theta.ones(num_steps)
  if case % 3 == 1:
    return theta_lib.Theta.single(num_steps)
  return theta_lib.Theta(tuple(rng.uniform(0.0, 2.0, num_steps)))


def random_rate(case, constants):
  """Returns gamma < 1/L, now and then 0 or nearly 0."""
  rng = np.random.default_rng([9, case])
  share = (rng.uniform(0.0, 0.99), 1e-9, 0.0, rng.uniform(0.0, 0.99))[case % 4]
  return share / constants.smoothness
