"""Counts the regret of a run while it runs, as paper 2 does.

    R(T) = sum over t = 1..T and m = 1..M of f(x_t^m) - f*

with f the objective over all data of all clients, at every query point of every
client. The fused round does not let the query points out. They are a pure
function of the round's start and of the examples drawn, so they are computed
anew here, in NumPy and float64, for all clients at once.
"""

import operator
from typing import Any, NamedTuple, Optional

import numpy as np

from baselines.regret import objectives


class LocalRule(NamedTuple):
  """How clients move between the queries of a round.

  See `tff_localupdate.local_update.local_steps.LocalSteps` for the steps. The
  weights Theta do not matter: they say what is sent, not where a client goes.

  Attributes:
    step_size: gamma.
    optimizer: `sgd`, `momentum` or `adagrad`.
    momentum: b of `momentum`.
    initial_accumulator: a_0 of `adagrad`.
    epsilon: eps of `adagrad`.
    step_factors: What gamma is multiplied by in each step; None is 1 each.
    proximal_strength: mu.
  """

  step_size: float
  optimizer: str = 'sgd'
  momentum: Optional[float] = None
  initial_accumulator: Optional[float] = None
  epsilon: Optional[float] = None
  step_factors: Optional[tuple[float, ...]] = None
  proximal_strength: float = 0.0


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
    rule: LocalRule,
    batch_sizes: Optional[np.ndarray] = None,
) -> LocalPaths:
  """Replays the local steps of all clients in one round.

      x_0 = start;  x_(l+1) = x_l - gamma_l d_l

  with d_l as the rule makes it of the gradients g(x_k; batch k), k <= l. See
  `RoundStart` for `rows` and `batch_sizes`; where a client has no batch left,
  its points mean nothing.

  Raises:
    ValueError: If shapes do not fit, or nobody knows how to replay the rule.
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
  gradients = objective.step_gradients(rows, batch_sizes)
  points = np.empty((num_steps + 1, num_clients, objective.dimension))
  points[0] = start
  move = _mover(rule)
  for step in range(num_steps):
    change = gradients(step, points[step])
    if rule.proximal_strength:
      change += rule.proximal_strength * (points[step] - start)
    change = move(change)
    factors = rule.step_factors
    change *= rule.step_size * (1.0 if factors is None else factors[step])
    np.subtract(points[step], change, out=points[step + 1])
  return LocalPaths(points[:-1].transpose(1, 0, 2), points[-1])


def _mover(rule: LocalRule) -> Any:
  """Returns the function of the gradients, in order, that gives d_l, anew."""
  if rule.optimizer == 'sgd':
    return lambda gradient: gradient
  state = rule.initial_accumulator or 0.0

  def momentum(gradient):
    nonlocal state
    state = rule.momentum * state + gradient
    return state.copy()

  def adagrad(gradient):
    nonlocal state
    state = state + gradient**2
    return gradient / np.sqrt(state + rule.epsilon)

  movers = {'momentum': momentum, 'adagrad': adagrad}
  if rule.optimizer not in movers:
    raise ValueError(
        'regret_every would be ignored: nobody knows where client_optimizer '
        f'{rule.optimizer!r} goes.'
    )
  return movers[rule.optimizer]


class AccountState(NamedTuple):
  """All that has been counted; plain numbers, so that it can be saved.

  See `AccountRecord`; `query_sum` is that of all query points, float64 [d].
  """

  cumulative_regret: float
  num_queries: int
  num_evaluated: int
  query_sum: np.ndarray


class AccountRecord(NamedTuple):
  """The columns of a record.

  Attributes:
    num_queries: Queries of all clients so far.
    cumulative_regret: R so far.
    last_regret: f(x) - f* at the last iterate.
    average_regret: f(x) - f* at the mean of all query points; NaN before the
      first. Exact whatever `evaluate_every` is.
    evaluate_every: The n by which R was counted; 1 is exact.
    num_evaluated: Points at which f was evaluated for R.
  """

  num_queries: int
  cumulative_regret: float
  last_regret: float
  average_regret: float
  evaluate_every: int
  num_evaluated: int


class Accountant:
  """Counts regret; what it has counted is in the state alone."""

  def __init__(
      self,
      objective: objectives.Objective,
      optimal_value: float,
      *,
      evaluate_every: int = 1,
  ):
    """Initializes the accountant of f with the optimal value f*.

    With `evaluate_every` = n above 1, f is evaluated for `add_paths` at the
    middle of each n consecutive steps of a client only and counts for all of
    them (the midpoint rule of the specification, section 9); `add_points` is
    exact at all times. Raises ValueError if an argument is out of its range.
    """
    self._evaluate_every = _checked_count('evaluate_every', evaluate_every, 1)
    if not np.isfinite(optimal_value):
      raise ValueError(f'optimal_value must be finite, found {optimal_value}.')
    self._objective = objective
    self._optimal_value = float(optimal_value)

  def initial_state(self) -> AccountState:
    """Returns the state in which nothing is counted."""
    return AccountState(0.0, 0, 0, np.zeros(self._objective.dimension))

  def add_points(
      self,
      state: AccountState,
      points: np.ndarray,
      weights: Optional[np.ndarray] = None,
  ) -> AccountState:
    """Counts query points [P, d], each exactly.

    The weights are how many queries each point had, whole numbers [P]; None is
    1 each. For CEAL, whose clients all query one point, that is M s_j. Points
    of weight 0 are not evaluated; points that are not finite make the regret
    not finite. Raises ValueError if shapes do not fit or a weight is not
    allowed.
    """
    points = objectives.checked_points(
        'points', points, self._objective.dimension
    )
    weights = _checked_weights(weights, len(points))
    points, weights = points[weights > 0], weights[weights > 0]
    return self._add(state, points, weights, weights @ points)

  def add_paths(
      self,
      state: AccountState,
      paths: np.ndarray,
      lengths: Optional[np.ndarray] = None,
  ) -> AccountState:
    """Counts the query points of local methods, every n-th or all.

    The paths [M, L, d] are the `LocalPaths.points` of a round. `lengths`, int
    [M], says how many of them each client queried, the first ones; None if all.
    Raises ValueError if the shape does not fit.
    """
    paths = np.asarray(paths, np.float64)
    dimension = self._objective.dimension
    if paths.ndim != 3 or paths.shape[2] != dimension:
      raise ValueError(
          f'paths must have shape [M, L, {dimension}], found {paths.shape}.'
      )
    if lengths is not None:
      return self._add_uneven_paths(state, paths, lengths)
    steps, weights = evaluated_steps(paths.shape[1], self._evaluate_every)
    return self._add(
        state,
        paths[:, steps].reshape(-1, dimension),
        np.tile(weights, len(paths)),
        paths.sum(axis=(0, 1)),
    )

  def _add_uneven_paths(self, state, paths, lengths):
    points, weights = [], []
    for path, length in zip(paths, lengths):
      steps, counts = evaluated_steps(int(length), self._evaluate_every)
      points.append(path[steps])
      weights.append(counts)
    is_queried = np.arange(paths.shape[1]) < np.asarray(lengths)[:, np.newaxis]
    return self._add(
        state,
        np.concatenate(points),
        np.concatenate(weights),
        paths[is_queried].sum(axis=0),
    )

  def record(
      self, state: AccountState, last_point: np.ndarray
  ) -> AccountRecord:
    """Returns the columns, at the server's current x [d]."""
    points = objectives.checked_points(
        'last_point', np.asarray(last_point)[np.newaxis],
        self._objective.dimension,
    )
    if state.num_queries:
      average = state.query_sum / state.num_queries
      points = np.concatenate([points, average[np.newaxis]])
    # At once: one pass over the data costs more than a point or two.
    regrets = [*map(float, self._regrets(points)), float('nan')]
    return AccountRecord(
        num_queries=int(state.num_queries),
        cumulative_regret=float(state.cumulative_regret),
        last_regret=regrets[0],
        average_regret=regrets[1],
        evaluate_every=self._evaluate_every,
        num_evaluated=int(state.num_evaluated),
    )

  def _regrets(self, points: np.ndarray) -> np.ndarray:
    return self._objective.values(points) - self._optimal_value

  def _add(self, state, points, weights, query_sum):
    regret = float(weights @ self._regrets(points))
    return state._replace(
        cumulative_regret=float(state.cumulative_regret) + regret,
        num_queries=int(state.num_queries) + int(weights.sum()),
        num_evaluated=int(state.num_evaluated) + len(points),
        query_sum=state.query_sum + query_sum,
    )


def evaluated_steps(
    num_steps: int, evaluate_every: int
) -> tuple[np.ndarray, np.ndarray]:
  """Returns which of L steps are evaluated, and for how many each; int64.

  That is the middle step of each run of n (the earlier of two), counted from 0,
  and the lengths of the runs, of which the last may be shorter.
  """
  starts = np.arange(0, num_steps, evaluate_every, dtype=np.int64)
  lengths = np.minimum(evaluate_every, num_steps - starts)
  return starts + (lengths - 1) // 2, lengths


def _checked_count(name: str, value: Any, least: int) -> int:
  is_bool = isinstance(value, (bool, np.bool_))
  try:
    count = operator.index(value)
  except TypeError:
    count = None
  if is_bool or count is None or count < least:
    raise ValueError(
        f'{name} must be a whole number that is at least {least}, found '
        f'{value!r}.'
    )
  return count


def _checked_weights(
    weights: Optional[np.ndarray], num_points: int
) -> np.ndarray:
  if weights is None:
    return np.ones(num_points, np.int64)
  weights = np.asarray(weights)
  if weights.shape != (num_points,):
    raise ValueError(
        f'weights must have shape ({num_points},), found {weights.shape}.'
    )
  is_whole = weights.dtype.kind in 'iu' or np.array_equal(
      weights, np.floor(weights)
  )
  if not is_whole or np.any(weights < 0):
    raise ValueError(
        f'weights must be whole numbers that are not negative, found {weights}.'
    )
  return weights.astype(np.int64)


# Where a run diverges, its regret tells, and no warning is needed.
_NOT_FINITE_IS_LEGAL = np.errstate(invalid='ignore', over='ignore')


class RoundStart(NamedTuple):
  """What the queries of a round follow from.

  Attributes:
    point: x as all clients know it, [d].
    rule: How clients move; None if they stay at `point`.
    rows: int [M, L, B], the examples of the batches as rows of the objective's
      data; not used where clients stay.
    num_queries: The queries of each client; of those with fewer batches, all
      that they have.
    num_clients: M.
    batch_sizes: int [M, L], how many rows of each batch count, 0 from the first
      batch on that a client lacks; None if all do.
  """

  point: np.ndarray
  rule: Optional[LocalRule]
  rows: Optional[np.ndarray]
  num_queries: int
  num_clients: int
  batch_sizes: Optional[np.ndarray] = None


class RegretCounter:
  """Counts the queries of rounds of one algorithm on one objective."""

  def __init__(
      self,
      objective: objectives.Objective,
      optimal_value: float,
      *,
      evaluate_every: int = 1,
      logs_norm: bool = False,
  ):
    """Makes a counter; see `Accountant`.

    With `logs_norm`, rows have the norm of the gradient of f.
    """
    self._objective = objective
    self._logs_norm = logs_norm
    self._accountant = Accountant(
        objective, optimal_value, evaluate_every=evaluate_every
    )

  def initial_state(self) -> AccountState:
    """Returns the state in which nothing is counted."""
    return self._accountant.initial_state()

  @_NOT_FINITE_IS_LEGAL
  def count(
      self, state: AccountState, start: RoundStart
  ) -> AccountState:
    """Returns the state after the queries of a round."""
    if not start.num_queries:
      return state
    lengths = None
    if start.batch_sizes is not None:
      found = np.count_nonzero(start.batch_sizes, axis=1)
      lengths = np.minimum(found, start.num_queries)
    if start.rule is None or start.rule.step_size == 0.0:
      total = start.num_clients * start.num_queries
      if lengths is not None:
        total = int(lengths.sum())
      return self._accountant.add_points(
          state, start.point[np.newaxis], np.array([total])
      )
    sizes = start.batch_sizes
    paths = replay_local_steps(
        self._objective,
        start.point,
        start.rows[:, : start.num_queries],
        start.rule,
        None if sizes is None else sizes[:, : start.num_queries],
    )
    return self._accountant.add_paths(state, paths.points, lengths)

  @_NOT_FINITE_IS_LEGAL
  def row(
      self,
      state: AccountState,
      last_point: np.ndarray,
      start_point: Optional[np.ndarray] = None,
  ) -> dict[str, Any]:
    """Returns the numbers by column, the round included.

    `last_point` is x after the round, `start_point` before it, each [d]; None
    before the first one.
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


def restored(state: Any) -> AccountState:
  """Returns a state that was saved, whatever holds its numbers, as numbers."""
  return AccountState(
      cumulative_regret=float(state.cumulative_regret),
      num_queries=int(state.num_queries),
      num_evaluated=int(state.num_evaluated),
      query_sum=np.asarray(state.query_sum),
  )


def flatten_weights(weights: Any) -> np.ndarray:
  """Returns trainable weights as one vector, float64 [d]."""
  leaves = [np.ravel(np.asarray(w, np.float64)) for w in weights]
  return np.concatenate(leaves)
