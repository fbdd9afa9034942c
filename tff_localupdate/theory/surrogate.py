"""Section 3: LocalUpdate as gradient descent on a surrogate loss.

On quadratic losses the expected update of a client is the gradient of

    ftilde_i(x, gamma, Theta) = 1/2 (x - c_i)' Q_i A_i (x - c_i)          (9)
    Q_i = Q_i(gamma, Theta) = sum_k theta_k (I - gamma A_i)^{k-1}         (8)

for every gamma (Lemma 2, Theorem 3), if batches are drawn independently: an
inner step multiplies the gradient by I - gamma A_i in expectation. With rates
gamma_1, ..., gamma_K in the inner loop it is the same with

    Q_i = sum_k theta_k prod_{l<k} (I - gamma_l A_i).

K-MAML has a surrogate loss of this kind too, that of 2K + 1 steps (Theorem 4).

Source: Charles and Konecny (2020), section 3.

`population` has N clients in d dimensions, x is a point [d], `theta` the
weights, `client_learning_rate` gamma or K(Theta) rates; arrays are float64. All
functions raise ValueError if a rate is negative, not finite or missing.
"""

import numpy as np

from tff_localupdate import arguments
from tff_localupdate import theta as theta_lib
from tff_localupdate.theory import quadratics
from tff_localupdate.theory import spectrum


def update_matrices(
    hessians: np.ndarray,
    theta: theta_lib.Theta,
    client_learning_rate: spectrum.ClientRate,
) -> np.ndarray:
  """Returns Q_i for each A_i: the expected update is Q_i times the gradient.

  `hessians` are A_i, [..., d, d], symmetric; so is the result.
  """
  return _map_spectrum(
      hessians,
      lambda lam: spectrum.update_eigenvalues(lam, theta, client_learning_rate),
  )


def surrogate_hessians(
    hessians: np.ndarray,
    theta: theta_lib.Theta,
    client_learning_rate: spectrum.ClientRate,
) -> np.ndarray:
  """Returns Q_i A_i for each A_i, [..., d, d], the Hessian of ftilde_i."""
  return _map_spectrum(
      hessians,
      lambda lam: lam * spectrum.update_eigenvalues(
          lam, theta, client_learning_rate
      ),
  )


def surrogate_hessian(
    population: quadratics.QuadraticPopulation,
    theta: theta_lib.Theta,
    client_learning_rate: spectrum.ClientRate,
) -> np.ndarray:
  """Returns E[Q_i A_i], [d, d], the Hessian of ftilde = E ftilde_i (10)."""
  return population.mean(
      surrogate_hessians(population.hessians, theta, client_learning_rate)
  )


def surrogate_losses(
    population: quadratics.QuadraticPopulation,
    x: np.ndarray,
    theta: theta_lib.Theta,
    client_learning_rate: spectrum.ClientRate,
) -> np.ndarray:
  """Returns ftilde_i(x, gamma, Theta) of each client, [N]."""
  gradients = surrogate_gradients(population, x, theta, client_learning_rate)
  return 0.5 * np.sum((x - population.centers) * gradients, axis=1)


def surrogate_loss(
    population: quadratics.QuadraticPopulation,
    x: np.ndarray,
    theta: theta_lib.Theta,
    client_learning_rate: spectrum.ClientRate,
) -> float:
  """Returns ftilde(x, gamma, Theta) = E ftilde_i."""
  losses = surrogate_losses(population, x, theta, client_learning_rate)
  return float(population.mean(losses))


def surrogate_gradients(
    population: quadratics.QuadraticPopulation,
    x: np.ndarray,
    theta: theta_lib.Theta,
    client_learning_rate: spectrum.ClientRate,
) -> np.ndarray:
  """Returns Q_i A_i (x - c_i), [N, d]: the expected update of each client."""
  hessians = surrogate_hessians(
      population.hessians, theta, client_learning_rate
  )
  return np.einsum('nij,nj->ni', hessians, x - population.centers)


def surrogate_gradient(
    population: quadratics.QuadraticPopulation,
    x: np.ndarray,
    theta: theta_lib.Theta,
    client_learning_rate: spectrum.ClientRate,
) -> np.ndarray:
  """Returns E[q_t | x_t = x], the gradient of ftilde, [d] (Theorem 3)."""
  return population.mean(
      surrogate_gradients(population, x, theta, client_learning_rate)
  )


def surrogate_minimizer(
    population: quadratics.QuadraticPopulation,
    theta: theta_lib.Theta,
    client_learning_rate: spectrum.ClientRate,
) -> np.ndarray:
  """Returns x*(gamma, Theta) = E[Q_i A_i]^{-1} E[Q_i A_i c_i], [d].

  It is x* if gamma = 0 or Theta = Theta_1. Raises ValueError also if there is
  none, as may be if gamma >= 1/L.
  """
  hessians = surrogate_hessians(
      population.hessians, theta, client_learning_rate
  )
  hessian = population.mean(hessians)
  _check_convex(hessian, client_learning_rate)
  offsets = np.einsum('nij,nj->ni', hessians, population.centers)
  return np.linalg.solve(hessian, population.mean(offsets))


def minimizer_shift(
    population: quadratics.QuadraticPopulation,
    theta: theta_lib.Theta,
    client_learning_rate: spectrum.ClientRate,
) -> np.ndarray:
  """Returns x*(gamma, Theta) - x*, [d], by the identity behind Theorem 16.

  With B_i = Q_i A_i / sum theta and B = E B_i:

      B^{-1} E[(B_i - A_i)(c_i - c)]
          + B^{-1} (A - B) A^{-1} E[(A_i - A)(c_i - c)]

  which keeps its digits where the two minimizers nearly agree (derived). Raises
  ValueError as `surrogate_minimizer`.
  """
  mean_hessian = population.mean_hessian
  deviations = population.centers - population.mean_center
  # x*(gamma, Theta) - c = B^{-1} E[B_i (c_i - c)], and x* - c the same with A_i
  # and A. Subtracted, with E(c_i - c) = 0, what is left are products of two
  # small factors, if B_i - A_i is taken by itself: at small gamma its entries
  # are far below those of A_i.
  changes = _map_spectrum(
      population.hessians,
      lambda lam: lam * _relative_change(lam, theta, client_learning_rate),
  )
  mean_change = population.mean(changes)
  _check_convex(mean_hessian + mean_change, client_learning_rate)
  first = population.mean(np.einsum('nij,nj->ni', changes, deviations))
  second = population.mean(
      np.einsum('nij,nj->ni', population.hessians - mean_hessian, deviations)
  )
  second = -mean_change @ np.linalg.solve(mean_hessian, second)
  return np.linalg.solve(mean_hessian + mean_change, first + second)


def condition_number(
    population: quadratics.QuadraticPopulation,
    theta: theta_lib.Theta,
    client_learning_rate: spectrum.ClientRate,
) -> float:
  """Returns the condition number of ftilde; see `surrogate_minimizer`."""
  hessian = surrogate_hessian(population, theta, client_learning_rate)
  _check_convex(hessian, client_learning_rate)
  eigenvalues = np.linalg.eigvalsh(hessian)
  return float(eigenvalues[-1] / eigenvalues[0])


def maml_theta(num_steps: int) -> theta_lib.Theta:
  """Returns Theta_{2K+1}, which K-MAML of K steps is on quadratics (Thm. 4)."""
  arguments.check_count('num_steps', num_steps)
  return theta_lib.Theta.single(2 * num_steps + 1)


def maml_gradient(
    hessian: np.ndarray,
    center: np.ndarray,
    x: np.ndarray,
    client_learning_rate: float,
    num_steps: int,
) -> np.ndarray:
  """Returns the gradient of m_K^i(x) = f_i(X_K^i(x)), K-MAML's objective, [d].

  X_K^i(x) is where K = `num_steps` full-gradient steps of rate gamma lead from
  x, for a client of `hessian` A_i, [d, d], and `center` c_i, [d]. The gradient,
  through these steps, is (I - gamma A_i)^{2K} A_i (x - c_i) (Theorem 4): K
  factors bring the point nearer to c_i, K more come with the chain rule.
  """
  hessian = surrogate_hessians(
      hessian, maml_theta(num_steps), client_learning_rate
  )
  return hessian @ (np.asarray(x) - center)


def _check_convex(hessian, client_learning_rate):
  lowest = np.linalg.eigvalsh(hessian)[0]
  if lowest <= 0.0:
    raise ValueError(
        'client_learning_rate must leave the surrogate loss strictly convex, '
        f'found {client_learning_rate} with the eigenvalue {lowest}.'
    )


def _relative_change(lam, theta, client_learning_rate):
  """q(lam)/q(0) - 1 for the eigenvalue q of Q, by sums that start at 0."""
  rates = spectrum.checked_rates(client_learning_rate, theta)
  change = np.zeros_like(lam)
  later = 0.0  # The sum of the weights after step k.
  for weight, rate in zip(reversed(theta.weights), reversed(rates)):
    # If q_k = w_k + (1 - rate lam) q_{k+1}, then the change from lam = 0 is
    # (1 - rate lam) change_{k+1} - rate lam (sum of the later weights).
    change = (1.0 - rate * lam) * change - rate * lam * later
    later += weight
  return change / later


def _map_spectrum(matrices, fn):
  # A polynomial of a symmetric matrix has its eigenvectors.
  matrices = quadratics.checked_matrices('hessians', matrices)
  eigenvalues, vectors = np.linalg.eigh(matrices)
  mapped = fn(eigenvalues)[..., np.newaxis, :] * vectors
  return mapped @ np.swapaxes(vectors, -1, -2)
