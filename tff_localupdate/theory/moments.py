"""Exact mean and second moment of LocalUpdate's iterates on quadratic losses.

Every local step is an affine map of the point, drawn independently, so mean and
second moment of x_t follow a linear recursion that needs no simulation. It
covers sampling of clients and of mini-batches, any Theta, and rates that change
from round to round or inside the inner loop.

How it is made: an affine map of x is a matrix that acts on (x - r, 1), for a
reference point r. Carried along with q, the sum that the client sends, step k
of InnerLoop is a matrix S that acts on u = (x_k - r, q, 1). Its random part is
independent of u, so

    E u <- E[S] E u,   E[u u'] <- E[S E[u u'] S'],

and E[S m S'] = E[S] m E[S]' + E[(S - E S) m (S - E S)'], the second term being
the one that a batch of B draws divides by B. Then clients are averaged.

`sampling` says what is drawn, `theta` the weights, `client_learning_rate`
gamma_t or K(Theta) rates of the inner loop, `server_learning_rate` eta_t,
`reference` r, [d]. Rates out of range raise ValueError.
"""

from collections.abc import Sequence
import dataclasses
import functools
import itertools
from typing import NamedTuple, Optional

import numpy as np

from tff_localupdate import arguments
from tff_localupdate import theta as theta_lib
from tff_localupdate.theory import quadratics
from tff_localupdate.theory import spectrum


class IterateMoments(NamedTuple):
  """The distribution of x_t as far as two moments tell, about a point r.

  Attributes:
    reference: r, [d]. With the minimizer in question here, distances to it
      keep their digits.
    mean: E[x_t - r], [d].
    second: E[(x_t - r)(x_t - r)'], [d, d].
  """

  reference: np.ndarray
  mean: np.ndarray
  second: np.ndarray

  @property
  def distance_squared(self) -> float:
    """E||x_t - r||^2."""
    return float(np.trace(self.second))

  @property
  def covariance(self) -> np.ndarray:
    """The covariance of x_t, [d, d]."""
    return self.second - np.outer(self.mean, self.mean)


def start_at(x: np.ndarray, reference: np.ndarray) -> IterateMoments:
  """Returns the moments of a certain x_1 = `x` about `reference`."""
  reference = np.asarray(reference, np.float64)
  difference = np.asarray(x, np.float64) - reference
  return IterateMoments(
      reference, difference, np.outer(difference, difference)
  )


@dataclasses.dataclass(frozen=True, eq=False)
class RoundSampling:
  """What is drawn in a round.

  Attributes:
    clients: The population.
    clients_per_round: M.
    batch_size: B, the examples of a local step, drawn with replacement; None
      is a full gradient.
    clients_with_replacement: Whether the M clients are drawn from P
      independently, as in the theory; else they are distinct and P is uniform,
      as in the experiments.
  """

  clients: Sequence[quadratics.QuadraticExamples]
  clients_per_round: int = 1
  batch_size: Optional[int] = None
  clients_with_replacement: bool = True

  def __post_init__(self) -> None:
    arguments.check_count('clients_per_round', self.clients_per_round)
    if self.batch_size is not None:
      arguments.check_count('batch_size', self.batch_size)
    distinct = not self.clients_with_replacement
    if distinct and self.clients_per_round > len(self.clients):
      raise ValueError(
          f'clients_per_round must be at most {len(self.clients)}, the number '
          f'of clients, found {self.clients_per_round}.'
      )

  @functools.cached_property
  def stacked(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A_z, A_z c_z and the weight of each example, [N, n, ...] each.

    Clients with fewer examples than others are filled up with weight 0.
    """
    num_rows = max(len(client.centers) for client in self.clients)
    shape = len(self.clients), num_rows
    dimension = self.clients[0].centers.shape[1]
    hessians = np.zeros((*shape, dimension, dimension))
    offsets, weights = np.zeros((*shape, dimension)), np.zeros(shape)
    for i, client in enumerate(self.clients):
      size = len(client.centers)
      hessians[i, :size], offsets[i, :size] = client.hessians, client.offsets
      weights[i, :size] = 1.0 / size
    return hessians, offsets, weights


class RoundResult(NamedTuple):
  """The moments of x_{t+1}, and E||q_t - grad ftilde(x_t)||^2 of the round.

  The latter is the least V that Lemma 25 admits here.
  """

  moments: IterateMoments
  update_variance: float


def next_moments(
    moments: IterateMoments,
    sampling: RoundSampling,
    *,
    theta: theta_lib.Theta,
    client_learning_rate: spectrum.ClientRate,
    server_learning_rate: float,
) -> RoundResult:
  """Returns what x_{t+1} = x_t - eta q_t makes of the moments of x_t.

  Given x_t, a client's update has the mean G_i (x_t - r, 1) with an affine map
  G_i, and a second moment that the steps of InnerLoop carry along. Updates of
  different clients are independent given x_t; for distinct clients out of N,
  E[q^i q^j'] is the mean over pairs i != j. P is uniform.
  """
  arguments.check_not_negative('server_learning_rate', server_learning_rate)
  rates = spectrum.checked_rates(client_learning_rate, theta)
  extended = _extend(moments)
  means, seconds = _client_updates(
      sampling, moments.reference, extended, theta.weights, rates
  )
  mean_map = means.mean(axis=0)
  second = _mean_of_squares(means, seconds.mean(axis=0), extended, sampling)
  dimension = moments.mean.shape[0]
  cross = extended[:dimension] @ mean_map.T
  eta = server_learning_rate
  # E||E[q_t | x_t]||^2. What E||q_t||^2 has beyond it is the variance.
  explained = np.trace(mean_map @ extended @ mean_map.T)
  new_second = moments.second - eta * (cross + cross.T) + eta**2 * second
  return RoundResult(
      IterateMoments(
          moments.reference,
          moments.mean - eta * mean_map @ extended[:, -1],
          # A skew part, which rounding brings in, would grow.
          (new_second + new_second.T) / 2.0,
      ),
      update_variance=max(0.0, float(np.trace(second) - explained)),
  )


def stationary_moments(
    reference: np.ndarray,
    sampling: RoundSampling,
    *,
    theta: theta_lib.Theta,
    client_learning_rate: spectrum.ClientRate,
    server_learning_rate: float,
) -> IterateMoments:
  """Returns the moments that constant rates lead to, whatever x_1 is.

  They are the fixed point of `next_moments`, about r; ValueError if there is
  none, as the second moment has no bound.
  """
  reference = np.asarray(reference, np.float64)
  dimension = reference.shape[0]

  def advance(flat):
    second = flat[dimension:].reshape(dimension, dimension)
    moments = next_moments(
        # Symmetric, as the recursion takes for granted.
        IterateMoments(reference, flat[:dimension], (second + second.T) / 2.0),
        sampling,
        theta=theta,
        client_learning_rate=client_learning_rate,
        server_learning_rate=server_learning_rate,
    ).moments
    return np.concatenate([moments.mean, moments.second.ravel()])

  # The recursion is affine: its matrix is what it does to a basis.
  size = dimension + dimension**2
  constant = advance(np.zeros(size))
  matrix = np.stack([advance(row) - constant for row in np.eye(size)], axis=1)
  radius = np.max(np.abs(np.linalg.eigvals(matrix)))
  if radius >= 1.0:
    raise ValueError(
        'server_learning_rate must let the second moment settle, found '
        f'{server_learning_rate}, with which it grows by {radius} per round.'
    )
  flat = np.linalg.solve(np.eye(size) - matrix, constant)
  return IterateMoments(
      reference,
      flat[:dimension],
      flat[dimension:].reshape(dimension, dimension),
  )


def _extend(moments: IterateMoments) -> np.ndarray:
  """E[v v'] for v = (x - r, 1), [d + 1, d + 1]."""
  column = moments.mean[:, np.newaxis]
  return np.block([[moments.second, column], [column.T, np.ones((1, 1))]])


def _client_updates(sampling, reference, extended, weights, rates):
  """Returns G with E[q | x] = G (x - r, 1), and E[q q'], of each client."""
  # The pair of moments is that of u = (x_k - r, q, 1), from (x_t - r, 0, 1) on.
  # `mean` maps (x_t - r, 1) to E u, so that it holds for every x_t at once.
  dimension = reference.shape[0]
  hessians, offsets, shares = sampling.stacked
  offsets = offsets - hessians @ reference
  start = np.zeros((2 * dimension + 1, dimension + 1))
  start[:dimension, :dimension] = np.eye(dimension)
  start[-1, -1] = 1.0
  mean, second = start, start @ extended @ start.T
  # Steps of the same weight and rate have the same matrices.
  for (weight, rate), same in itertools.groupby(zip(weights, rates)):
    steps = _step_matrices(hessians, offsets, weight, rate)
    step = np.einsum('cn,cnij->cij', shares, steps)
    changes = steps - step[:, np.newaxis]
    for _ in same:
      mean, noise = step @ mean, 0.0
      if sampling.batch_size is not None:
        # A batch of B draws: the variance of one draw, divided by B.
        spread = changes @ (
            second[..., np.newaxis, :, :] @ np.swapaxes(changes, -1, -2)
        )
        noise = np.einsum('cn,cnij->cij', shares, spread) / sampling.batch_size
      second = step @ second @ np.swapaxes(step, -1, -2) + noise
  update = slice(dimension, 2 * dimension)
  return mean[:, update], second[:, update, update]


def _step_matrices(hessians, offsets, weight, rate):
  """One matrix per example: what a step with it alone does to (x - r, q, 1)."""
  dimension = offsets.shape[-1]
  size = 2 * dimension + 1
  steps = np.tile(np.eye(size), (*offsets.shape[:-1], 1, 1))
  steps[..., :dimension, :dimension] -= rate * hessians
  steps[..., :dimension, -1] = rate * offsets
  steps[..., dimension:-1, :dimension] = weight * hessians
  steps[..., dimension:-1, -1] = -weight * offsets
  return steps


def _mean_of_squares(means, mean_second, extended, sampling):
  """E[q_t q_t'] for the mean of M updates, from those of single clients."""
  num_drawn = sampling.clients_per_round
  mean_map = means.mean(axis=0)
  # q_t q_t' has M terms of one client and M (M - 1) of two. Two drawn with
  # replacement are independent given x_t; two distinct ones are any of the
  # N (N - 1) ordered pairs, all but the N of one with itself.
  pairs = mean_map @ extended @ mean_map.T
  if not sampling.clients_with_replacement and num_drawn > 1:
    num_clients = len(means)
    same = np.mean(means @ extended @ np.swapaxes(means, 1, 2), axis=0)
    pairs = (num_clients * pairs - same) / (num_clients - 1)
  return (mean_second + (num_drawn - 1) * pairs) / num_drawn
