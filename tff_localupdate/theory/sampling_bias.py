"""What becomes of E[q] if batches are not drawn independently.

Theorem 3 needs independent batches. Two common shortcuts break it: a shuffled
pass over the client's examples (an epoch, where every example comes once), and
a batch that is used again. Everything here is for one client of quadratic
examples, with g_z(x) = A_z (x - c_z) and the covariance

    C(x) = mean_z(A_z g_z(x)) - A_i grad f_i(x)

of an example's Hessian and gradient. With two steps, E[q] has one product of a
Hessian of the second batch with a gradient of the first. It is A_i grad f_i(x)
for independent batches; what is added to it is C(x)/B where both are the same
batch, and -C(x)/(n - 1) where they are disjoint. (Derived.)

`client` has n examples in d dimensions, x is a point [d], `theta` the weights,
`client_learning_rate` gamma or, as `ClientRate`, K(Theta) rates, `batch_size`
B. Functions raise ValueError if one of them is out of its range.
"""

import itertools
import math

import numpy as np

from tff_localupdate import arguments
from tff_localupdate import theta as theta_lib
from tff_localupdate.theory import quadratics
from tff_localupdate.theory import spectrum

# Enumerating more orders than this takes minutes.
_MAX_ORDERS = 1_000_000


def gradient_covariance(
    client: quadratics.QuadraticExamples, x: np.ndarray
) -> np.ndarray:
  """Returns C(x) = mean_z(A_z g_z(x)) - A_i grad f_i(x), [d]."""
  gradients = client.gradients(np.asarray(x, np.float64))
  products = np.einsum('nij,nj->ni', client.hessians, gradients)
  return products.mean(axis=0) - client.hessian @ gradients.mean(axis=0)


def epoch_bias(
    client: quadratics.QuadraticExamples,
    x: np.ndarray,
    theta: theta_lib.Theta,
    client_learning_rate: float,
) -> np.ndarray:
  """Returns E[q] - grad ftilde_i(x), [d], for two batches of a shuffled epoch.

      theta_2 gamma C(x) / (n - 1)

  for K(Theta) = 2 disjoint batches, whatever their size, and n >= 2. An epoch
  of more steps has terms of higher order in gamma; see `epoch_update`.
  """
  _check_two_steps(theta)
  num_examples = len(client.centers)
  if num_examples < 2:
    raise ValueError('client must have at least two examples, found one.')
  arguments.check_not_negative('client_learning_rate', client_learning_rate)
  scale = theta.weights[1] * client_learning_rate / (num_examples - 1)
  return scale * gradient_covariance(client, x)


def reuse_bias(
    client: quadratics.QuadraticExamples,
    x: np.ndarray,
    theta: theta_lib.Theta,
    client_learning_rate: float,
    batch_size: int,
) -> np.ndarray:
  """Returns E[q] - grad ftilde_i(x) if both steps use the same batch, [d].

      - theta_2 gamma C(x) / B

  for K(Theta) = 2 and B draws with replacement.
  """
  _check_two_steps(theta)
  arguments.check_count('batch_size', batch_size)
  arguments.check_not_negative('client_learning_rate', client_learning_rate)
  scale = theta.weights[1] * client_learning_rate / batch_size
  return -scale * gradient_covariance(client, x)


def epoch_update(
    client: quadratics.QuadraticExamples,
    x: np.ndarray,
    theta: theta_lib.Theta,
    client_learning_rate: spectrum.ClientRate,
    batch_size: int = 1,
) -> np.ndarray:
  """Returns E[q] over all orders in which a shuffled epoch may come, [d].

  By enumeration; ValueError also if K(Theta) B > n, or for too many orders.
  """
  arguments.check_count('batch_size', batch_size)
  num_examples, num_drawn = len(client.centers), theta.num_steps * batch_size
  if num_drawn > num_examples:
    raise ValueError(
        f'client must have at least {num_drawn} examples, K B, found '
        f'{num_examples}.'
    )
  num_orders = math.perm(num_examples, num_drawn)
  if num_orders > _MAX_ORDERS:
    raise ValueError(
        f'client must have at most {_MAX_ORDERS} orders of its examples, found '
        f'{num_orders}.'
    )
  # Each order of n examples that K B of them can come in, equally likely.
  orders = np.array(
      list(itertools.permutations(range(num_examples), num_drawn))
  ).reshape(num_orders, theta.num_steps, batch_size)
  return run_batches(client, x, theta, client_learning_rate, orders).mean(
      axis=0
  )


def run_batches(
    client: quadratics.QuadraticExamples,
    x: np.ndarray,
    theta: theta_lib.Theta,
    client_learning_rate: spectrum.ClientRate,
    batches: np.ndarray,
) -> np.ndarray:
  """Runs InnerLoop (Algorithm 2) R times with given batches; q is [R, d].

  `batches`, [R, K, B], are the numbers of the examples in each batch.
  """
  rates = spectrum.checked_rates(client_learning_rate, theta)
  batches = np.asarray(batches)
  if batches.ndim != 3 or batches.shape[1] != theta.num_steps:
    raise ValueError(
        f'batches must have shape [R, {theta.num_steps}, B], found '
        f'{batches.shape}.'
    )
  offsets = client.offsets
  points = np.tile(np.asarray(x, np.float64), (len(batches), 1))
  update = np.zeros_like(points)
  for step, (weight, rate) in enumerate(zip(theta.weights, rates)):
    drawn = batches[:, step]
    hessians = client.hessians[drawn].mean(axis=1)
    gradients = np.einsum('rij,rj->ri', hessians, points)
    gradients -= offsets[drawn].mean(axis=1)
    update += weight * gradients
    points -= rate * gradients
  return update


def maml_update(
    client: quadratics.QuadraticExamples,
    x: np.ndarray,
    client_learning_rate: float,
    num_steps: int,
    batch_size: int,
    *,
    reuse: bool,
) -> np.ndarray:
  """Returns E[q] of K-MAML with mini-batches of B draws with replacement, [d].

      q = (I - gamma A_{S'_1}) ... (I - gamma A_{S'_K}) g(X_K(x))

  where X_K(x) is where K = `num_steps` steps on batches S_1, ..., S_K lead, and
  the last gradient has a batch of its own. If the Hessian products have batches
  S'_k of their own, E[q] is `surrogate.maml_gradient`; with `reuse`, S'_k =
  S_k, as automatic differentiation does, it is not.
  """
  arguments.check_not_negative('client_learning_rate', client_learning_rate)
  arguments.check_count('num_steps', num_steps)
  arguments.check_count('batch_size', batch_size)
  gamma, mean, offsets = client_learning_rate, client.hessian, client.offsets
  offset = offsets.mean(axis=0)
  identity = np.eye(len(mean))
  # E[q | x at step k] = matrix x - vector, from the last step backwards.
  matrix, vector = mean, offset
  share = 1.0 / batch_size if reuse else 0.0
  for _ in range(num_steps):
    deviations = client.hessians - mean
    shake = deviations @ matrix
    # E[(I - gamma A_S) m (I - gamma A_S)] = outer m outer + gamma^2 Cov / B,
    # and so for the offsets: the covariance of the two places in which the
    # batch stands.
    extra_matrix = gamma**2 * share * np.mean(shake @ deviations, axis=0)
    extra_vector = gamma**2 * share * np.einsum(
        'nij,nj->i', shake, offsets - offset
    ) / len(offsets)
    outer = identity - gamma * mean
    # matrix (x - gamma (mean x - offset)) - vector, times the outer factor.
    vector = outer @ (vector - gamma * matrix @ offset) + extra_vector
    matrix = outer @ matrix @ outer + extra_matrix
  return matrix @ np.asarray(x, np.float64) - vector


def _check_two_steps(theta: theta_lib.Theta) -> None:
  if theta.num_steps != 2:
    raise ValueError(
        f'theta must have two steps, found {theta.num_steps}.'
    )
