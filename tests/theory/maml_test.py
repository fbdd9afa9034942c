"""K-MAML: by value, and by the definition of its objective."""

import numpy as np

from tests.theory import cases
from tff_localupdate.theory import surrogate


def _close(found, expected):
  np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


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
