"""Regret counted round by round is the sum over the queries of the rounds."""

import numpy as np
import pytest

from baselines.regret import counter as counter_lib
from baselines.regret import objectives

_M, _L, _ETA = 3, 5, 0.05


def _objective():
  generator = np.random.default_rng(0)
  return objectives.LeastSquares(
      generator.standard_normal((30, 4)), generator.standard_normal(30)
  )


def _value(f, point):
  """f(x) - f*, by sums."""
  best = np.linalg.lstsq(f.features, f.labels, rcond=None)[0]
  values = [np.mean((f.features @ x - f.labels) ** 2) for x in (point, best)]
  return values[0] - values[1]


_MOVES = counter_lib.LocalRule(_ETA)


def _counter(every=1, **options):
  f = _objective()
  return f, counter_lib.RegretCounter(
      f, f.least_value, evaluate_every=every, **options
  )


def _start(point, num_queries=_L, seed=1, rule=_MOVES):
  rows = np.random.default_rng(seed).integers(30, size=(_M, _L, 2))
  return counter_lib.RoundStart(point, rule, rows, num_queries, _M)


def _path(f, start, client):
  """The query points of a client, by the formula of local SGD."""
  x = start.point
  for batch in start.rows[client, : start.num_queries]:
    yield x
    gradient = np.zeros(4)
    for i in batch:
      gradient += (f.features[i] @ x - f.labels[i]) * f.features[i]
    x = x - start.rule.step_size * gradient  # 2 / B is 1.


@pytest.mark.parametrize('rule', [None, counter_lib.LocalRule(0.0)])
def test_clients_that_stay_count_one_point_for_all(rule):
  f, counter = _counter()
  point = np.arange(4.0)
  state = counter.count(counter.initial_state(), _start(point, rule=rule))
  assert state.cumulative_regret == pytest.approx(
      _M * _L * _value(f, point), rel=1e-12
  )
  assert (state.num_queries, state.num_evaluated) == (_M * _L, 1)
  np.testing.assert_allclose(state.query_sum, _M * _L * point)


@pytest.mark.parametrize('num_queries', [_L, 2])
def test_clients_that_move_count_every_point(num_queries):
  f, counter = _counter()
  start = _start(np.arange(4.0), num_queries)
  state = counter.count(counter.initial_state(), start)
  points = [x for m in range(_M) for x in _path(f, start, m)]
  assert len(points) == _M * num_queries
  assert state.cumulative_regret == pytest.approx(
      sum(_value(f, x) for x in points), rel=1e-11
  )
  assert state.num_queries == state.num_evaluated == _M * num_queries
  np.testing.assert_allclose(state.query_sum, np.sum(points, axis=0))


@pytest.mark.parametrize('num_queries', [_L, 2])
@pytest.mark.parametrize('every', [1, 2])
def test_clients_with_fewer_batches_count_those_that_they_have(
    num_queries, every
):
  f, counter = _counter(every)
  sizes = np.array([[2, 2, 2, 2, 1], [2, 1, 0, 0, 0], [0, 0, 0, 0, 0]])
  start = _start(np.arange(4.0), num_queries)._replace(batch_sizes=sizes)
  state = counter.count(counter.initial_state(), start)
  total, queries, visited = 0.0, 0, np.zeros(4)
  for m in range(_M):
    x, points = start.point, []
    for rows, size in zip(start.rows[m], sizes[m]):
      if not size or len(points) == num_queries:
        break
      points.append(x)
      batch = rows[:size]
      errors = f.features[batch] @ x - f.labels[batch]
      x = x - _ETA * 2 / size * errors @ f.features[batch]
    queries += len(points)
    visited += np.sum(points, axis=0) if points else 0.0
    for first in range(0, len(points), every):
      run = points[first : first + every]
      total += len(run) * _value(f, run[(len(run) - 1) // 2])
  assert state.cumulative_regret == pytest.approx(total, rel=1e-11)
  assert state.num_queries == queries
  np.testing.assert_allclose(state.query_sum, visited, rtol=1e-12)


def test_every_third_point_counts_for_its_neighbours():
  f, counter = _counter(every=3)
  start = _start(np.arange(4.0))
  state = counter.count(counter.initial_state(), start)
  # Of 0 1 2 | 3 4: the middle ones, the earlier of two.
  expected = 0.0
  for m in range(_M):
    points = list(_path(f, start, m))
    expected += 3 * _value(f, points[1]) + 2 * _value(f, points[3])
  assert state.cumulative_regret == pytest.approx(expected, rel=1e-11)
  assert (state.num_queries, state.num_evaluated) == (_M * _L, 2 * _M)


@pytest.mark.parametrize('rule', [None, _MOVES])
def test_round_without_queries_counts_nothing(rule):
  _, counter = _counter()
  start = counter.initial_state()
  state = counter.count(start, _start(np.ones(4), num_queries=0, rule=rule))
  assert state[:3] == (0.0, 0, 0) and not state.query_sum.any()


def test_numbers_by_column():
  f, counter = _counter()
  first, last = np.arange(4.0), np.ones(4)
  state = counter.initial_state()
  for point in (first, last):
    state = counter.count(state, _start(point, rule=None))
  row = counter.row(state, last, first)
  expected = {
      'cumulative_regret': 15 * (_value(f, first) + _value(f, last)),
      'last_regret': _value(f, last),
      'average_regret': _value(f, (first + last) / 2),
      'regret_points': 2,
  }
  assert row == pytest.approx(expected, rel=1e-11)


def test_before_the_first_round_there_is_no_average():
  f, counter = _counter()
  row = counter.row(counter.initial_state(), np.ones(4))
  assert row == pytest.approx({
      'cumulative_regret': 0.0, 'last_regret': _value(f, np.ones(4)),
      'regret_points': 0,
  }, rel=1e-11)


def test_ceal_also_tells_the_true_norm():
  f, counter = _counter(logs_norm=True)
  point = np.arange(4.0)
  state = counter.count(counter.initial_state(), _start(point))
  gradient = 2 * f.features.T @ (f.features @ point - f.labels) / 30
  row = counter.row(state, np.ones(4), point)
  assert row['true_gradient_norm'] == pytest.approx(
      np.linalg.norm(gradient), rel=1e-12
  )
  assert 'true_gradient_norm' not in counter.row(state, np.ones(4))


def test_state_that_was_saved_as_arrays_goes_on_as_numbers():
  _, counter = _counter()
  state = counter.count(counter.initial_state(), _start(np.arange(4.0)))
  saved = counter_lib.AccountState(*(np.asarray(leaf) for leaf in state))
  found = counter_lib.restored(saved)
  assert [type(leaf) for leaf in found] == [float, int, int, np.ndarray]
  for leaf, expected in zip(found, state):
    assert np.array_equal(leaf, expected)


def test_weights_become_one_vector_row_by_row():
  weights = [np.array([[1, 2], [3, 4]], np.float32), np.float32(5)]
  found = counter_lib.flatten_weights(weights)
  assert found.dtype == np.float64
  assert found.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
