"""The inner loop of the local methods of paper 2 in NumPy.

TFF's fused round does not let the query points out. They are a pure function of
the round's start and of the examples drawn, so they are computed anew here, in
float64 and for all clients at once.
"""

from typing import NamedTuple

import numpy as np

from baselines.experiment import objectives


class LocalPaths(NamedTuple):
  """Where clients went in one round.

  Attributes:
    points: The query points x_0, ..., x_(L-1) of each client, [M, L, d].
    ends: x_L of each client, not queried, [M, d].
  """

  points: np.ndarray
  ends: np.ndarray


def replay_local_steps(
    objective: objectives.Objective,
    start: np.ndarray,
    rows: np.ndarray,
    step_size: float,
) -> LocalPaths:
  """Replays the local steps of all clients in one round.

      x_0 = start;  x_(l+1) = x_l - eta g(x_l; batch l)

  as FedAvg, FedPAQ and FedCOM have it.

  Args:
    objective: Has the examples of all clients and their gradients.
    start: The point that all clients received, [d].
    rows: int [M, L, B], the examples of client m's batch l as rows of the
      objective's data.
    step_size: eta.

  Returns:
    The paths.

  Raises:
    ValueError: If shapes do not fit.
  """
  rows = np.asarray(rows)
  if rows.ndim != 3 or 0 in rows.shape or rows.dtype.kind not in 'iu':
    raise ValueError(
        'rows must be whole numbers of shape [M, L, B], each at least 1, found '
        f'{rows.dtype} {rows.shape}.'
    )
  start = np.asarray(start, np.float64)
  if start.shape != (objective.dimension,):
    raise ValueError(
        f'start must have shape ({objective.dimension},), found {start.shape}.'
    )
  num_clients, num_steps, _ = rows.shape
  gradients = objective.step_gradients(rows)
  points = np.empty((num_steps + 1, num_clients, objective.dimension))
  points[0] = start
  for step in range(num_steps):
    change = gradients(step, points[step])
    change *= step_size
    np.subtract(points[step], change, out=points[step + 1])
  return LocalPaths(points[:-1].transpose(1, 0, 2), points[-1])
