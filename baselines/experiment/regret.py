"""Counts the regret of a run while it runs."""

from typing import Any, NamedTuple, Optional

import numpy as np

from baselines.algorithms import horizon_configs
from baselines.experiment import accounting
from baselines.experiment import objectives
from baselines.experiment import replay

# Where a run diverges, its regret tells, and no warning is needed.
_NOT_FINITE_IS_LEGAL = np.errstate(invalid='ignore', over='ignore')


class RoundStart(NamedTuple):
  """What the queries of a round follow from.

  Attributes:
    point: x as all clients know it, [d].
    step_size: eta.
    rows: int [M, L, B], the examples of the batches as rows of the objective's
      data; not used by algorithms whose clients stay at `point`.
    num_queries: The queries of each client.
    num_clients: M.
  """

  point: np.ndarray
  step_size: float
  rows: Optional[np.ndarray]
  num_queries: int
  num_clients: int


class RegretCounter:
  """Counts the queries of rounds of one algorithm on one objective."""

  def __init__(
      self,
      objective: objectives.Objective,
      optimal_value: float,
      config: horizon_configs.HorizonConfig,
  ):
    """Makes a counter.

    Args:
      objective: f.
      optimal_value: f*.
      config: The algorithm's settings: whether clients move between queries,
        and at which of them f is evaluated.
    """
    self._objective = objective
    self._moves = config.QUERIES_MOVE
    self._logs_norm = 'true_gradient_norm' in config.extra_columns
    self._accountant = accounting.Accountant(
        objective, optimal_value, evaluate_every=config.regret_every
    )

  def initial_state(self) -> accounting.AccountState:
    """Returns the state in which nothing is counted."""
    return self._accountant.initial_state()

  @_NOT_FINITE_IS_LEGAL
  def count(
      self, state: accounting.AccountState, start: RoundStart
  ) -> accounting.AccountState:
    """Returns the state after the queries of a round."""
    if not self._moves:
      num_queries = start.num_clients * start.num_queries
      return self._accountant.add_points(
          state, start.point[np.newaxis], np.array([num_queries])
      )
    if not start.num_queries:
      return state
    paths = replay.replay_local_steps(
        self._objective,
        start.point,
        start.rows[:, : start.num_queries],
        start.step_size,
    )
    return self._accountant.add_paths(state, paths.points)

  @_NOT_FINITE_IS_LEGAL
  def row(
      self,
      state: accounting.AccountState,
      last_point: np.ndarray,
      start_point: Optional[np.ndarray] = None,
  ) -> dict[str, Any]:
    """Returns the numbers by column.

    Args:
      state: What is counted, the round included.
      last_point: x after the round, [d].
      start_point: x before the round; None before the first one.
    """
    record = self._accountant.record(state, last_point)
    values = {
        'cumulative_regret': record.cumulative_regret,
        'last_regret': record.last_regret,
        'regret_points': record.num_evaluated,
    }
    if start_point is not None:
      values['average_regret'] = record.average_regret
    if start_point is not None and self._logs_norm:
      gradient = self._objective.gradient(start_point)
      values['true_gradient_norm'] = float(np.linalg.norm(gradient))
    return values


def restored(state: Any) -> accounting.AccountState:
  """Returns a state that was saved, whatever holds its numbers, as numbers."""
  return accounting.AccountState(
      cumulative_regret=float(state.cumulative_regret),
      num_queries=int(state.num_queries),
      num_evaluated=int(state.num_evaluated),
      query_sum=np.asarray(state.query_sum),
  )


def flatten_weights(weights: Any) -> np.ndarray:
  """Returns trainable weights as one vector, float64 [d]."""
  leaves = [np.ravel(np.asarray(w, np.float64)) for w in weights]
  return np.concatenate(leaves)
