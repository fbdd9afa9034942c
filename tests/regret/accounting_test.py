"""Regret by plain sums; resuming is as never having stopped."""

import numpy as np
import pytest

from baselines.regret import counter
from baselines.regret import objectives
from baselines.regret import optimum

_M, _L = 3, 10


def _quadratic():
  generator = np.random.default_rng(0)
  features = generator.standard_normal((60, 4))
  labels = features @ np.ones(4) / 2 + generator.standard_normal(60)
  return objectives.LeastSquares(features, labels, 1 / 6)


def _logistic():
  generator = np.random.default_rng(0)
  labels = generator.integers(3, size=60)
  features = generator.standard_normal((60, 4)) + np.eye(4)[labels]
  return objectives.SoftmaxRegression(features, labels, 3, 0.5)


def _accountant(f, **kwargs):
  return counter.Accountant(f, optimum.solve(f).value, **kwargs)


def _fed_avg_rounds(f, num_rounds, step_size=0.05):
  """Returns the local paths of FedAvg by round, and the server's last point."""
  generator = np.random.default_rng(9)
  point = np.zeros(f.dimension)
  rounds = []
  for _ in range(num_rounds):
    rows = generator.integers(20, size=(_M, _L, 2))
    rows += 20 * np.arange(_M)[:, np.newaxis, np.newaxis]
    paths, ends = counter.replay_local_steps(
        f, point, rows, counter.LocalRule(step_size)
    )
    point = ends.mean(axis=0)
    rounds.append(paths)
  return rounds, point


def _quadratic_loss(f, x):
  return np.mean((f.features @ x - f.labels) ** 2) / 6


def _logistic_loss(f, x):
  logits = f.features @ x.reshape(4, 3)
  losses = np.log(np.exp(logits).sum(axis=1)) - logits[range(60), f.labels]
  return losses.mean() + 0.25 * x @ x


_CASES = [(_quadratic, _quadratic_loss), (_logistic, _logistic_loss)]


@pytest.mark.parametrize('build, loss', _CASES)
def test_regret_is_the_sum_over_every_query_of_every_client(build, loss):
  f = build()
  accountant, best = _accountant(f), optimum.solve(f)
  state, expected, visited = accountant.initial_state(), 0.0, []
  rounds, point = _fed_avg_rounds(f, 3)
  for paths in rounds:
    state = accountant.add_paths(state, paths)
    for m in range(_M):
      for step in range(_L):
        expected += loss(f, paths[m, step]) - loss(f, best.point)
        visited.append(paths[m, step])
  record = accountant.record(state, point)
  assert record.cumulative_regret == pytest.approx(expected, rel=1e-10)
  assert record.last_regret == pytest.approx(
      loss(f, point) - loss(f, best.point), rel=1e-9
  )
  average = np.mean(visited, axis=0)
  assert record.average_regret == pytest.approx(
      loss(f, average) - loss(f, best.point), rel=1e-9
  )
  # Jensen: what the average iterate is for.
  assert record.average_regret <= expected / 90
  assert record.num_queries == record.num_evaluated == 90
  assert record.evaluate_every == 1


def test_paths_and_their_points_count_the_same():
  f = _logistic()
  accountant = _accountant(f)
  by_path = by_point = accountant.initial_state()
  for paths in _fed_avg_rounds(f, 2)[0]:
    by_path = accountant.add_paths(by_path, paths)
    by_point = accountant.add_points(by_point, paths.reshape(-1, 12))
  assert by_path.cumulative_regret == by_point.cumulative_regret
  np.testing.assert_allclose(by_path.query_sum, by_point.query_sum, rtol=1e-13)
  assert by_path[1:3] == by_point[1:3] == (60, 60)


def test_rounds_one_by_one_equal_all_at_once():
  f = _logistic()
  accountant = _accountant(f)
  rounds, _ = _fed_avg_rounds(f, 4)
  one_by_one = accountant.initial_state()
  for paths in rounds:
    one_by_one = accountant.add_paths(one_by_one, paths)
  at_once = accountant.add_paths(
      accountant.initial_state(), np.concatenate(rounds)
  )
  for found, expected in zip(one_by_one, at_once):
    np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_saved_state_goes_on_as_if_never_stopped():
  f = _logistic()
  rounds, _ = _fed_avg_rounds(f, 4)

  def count(state, rounds):
    accountant = _accountant(f)
    for paths in rounds:
      state = accountant.add_paths(state, paths)
    return state

  start = _accountant(f).initial_state()
  expected = count(start, rounds)
  saved = [np.asarray(leaf) for leaf in count(start, rounds[:2])]
  found = count(counter.AccountState(*saved), rounds[2:])
  for leaf, other in zip(found, expected):
    assert np.array_equal(leaf, other)
  record = _accountant(f).record(found, np.zeros(12))
  assert record == _accountant(f).record(expected, np.zeros(12))


def test_weight_counts_a_point_for_all_who_query_it():
  # An exchange of CEAL: M clients query one point s_j times each.
  f = _quadratic()
  accountant = _accountant(f)
  points = np.array([[0.0, 0, 0, 0], [9.0, 9, 9, 9], [0.5, 0.2, 0, 1]])
  once = accountant.add_points(
      accountant.initial_state(), points, np.array([_M * 9, 0, _M * 2])
  )
  plain = accountant.add_points(
      accountant.initial_state(),
      np.concatenate([[points[0]] * 27, [points[2]] * 6]),
  )
  assert once.cumulative_regret == pytest.approx(
      plain.cumulative_regret, rel=1e-13
  )
  np.testing.assert_allclose(once.query_sum, plain.query_sum, rtol=1e-13)
  assert (once.num_queries, once.num_evaluated) == (33, 2)


def test_regret_at_the_optimum_is_zero():
  for f in (_quadratic(), _logistic()):
    accountant, best = _accountant(f), optimum.solve(f)
    state = accountant.add_points(
        accountant.initial_state(), best.point[np.newaxis], np.array([1000])
    )
    assert abs(state.cumulative_regret) < 1e-10


@pytest.mark.parametrize('steps, every, expected', [
    (50, 25, ([12, 37], [25, 25])),
    (50, 1, (range(50), [1] * 50)),
    (10, 4, ([1, 5, 8], [4, 4, 2])),
    (3, 25, ([1], [3])),
    (0, 5, ([], [])),
])
def test_every_nth_is_the_midpoint_rule_of_section_9(steps, every, expected):
  found = counter.evaluated_steps(steps, every)
  assert [list(part) for part in found] == [list(part) for part in expected]


def test_every_5th_point_errs_by_2_8_percent_here_and_says_so():
  f = _logistic()
  exact, thinned = _accountant(f), _accountant(f, evaluate_every=5)
  states = [exact.initial_state(), thinned.initial_state()]
  rounds, point = _fed_avg_rounds(f, 5)
  for paths in rounds:
    states = [exact.add_paths(states[0], paths),
              thinned.add_paths(states[1], paths)]
  expected = exact.record(states[0], point)
  found = thinned.record(states[1], point)
  error = found.cumulative_regret / expected.cumulative_regret - 1
  assert abs(error) == pytest.approx(0.02754, abs=1e-5)
  assert (found.evaluate_every, found.num_evaluated) == (5, 30)
  assert (expected.evaluate_every, expected.num_evaluated) == (1, 150)
  # All else is exact whatever n is.
  assert found.num_queries == expected.num_queries == 150
  assert found.average_regret == expected.average_regret
  assert found.last_regret == expected.last_regret


def test_before_the_first_query_there_is_no_average():
  accountant = _accountant(_quadratic())
  record = accountant.record(accountant.initial_state(), np.zeros(4))
  assert record.num_queries == 0
  assert record.cumulative_regret == 0.0
  assert np.isnan(record.average_regret)


def test_divergence_is_reported():
  f = _logistic()
  accountant = _accountant(f)
  state = accountant.add_points(
      accountant.initial_state(), np.full((1, 12), np.nan)
  )
  assert np.isnan(state.cumulative_regret)


@pytest.mark.parametrize('arguments, expected', [
    ({'evaluate_every': 0}, 'evaluate_every must be a whole number'),
    ({'evaluate_every': True}, 'evaluate_every must be a whole number'),
    ({'optimal_value': np.nan}, 'optimal_value must be finite, found nan'),
])
def test_bad_arguments_are_refused(arguments, expected):
  sound = {'objective': _quadratic(), 'optimal_value': 0.0}
  with pytest.raises(ValueError, match=expected):
    counter.Accountant(**{**sound, **arguments})


@pytest.mark.parametrize('method, arguments, expected', [
    ('add_points', [np.zeros(4)], r'points must have shape \[P, 4\]'),
    ('add_points', [np.zeros((2, 4)), [1]], r'weights must have shape \(2,\)'),
    ('add_points', [np.zeros((1, 4)), [-1]], 'weights must be whole numbers'),
    ('add_points', [np.zeros((1, 4)), [0.5]], 'weights must be whole numbers'),
    ('add_points', [np.zeros((1, 4)), [np.nan]], 'weights must be whole'),
    ('add_paths', [np.zeros((2, 4))], r'paths must have shape \[M, L, 4\]'),
    ('record', [np.zeros(3)], r'last_point must have shape \[P, 4\]'),
])
def test_bad_values_are_refused(method, arguments, expected):
  accountant = _accountant(_quadratic())
  with pytest.raises(ValueError, match=expected):
    getattr(accountant, method)(accountant.initial_state(), *arguments)


def _row_sum_data(seed):
  """The synthetic data of section 8, N = 2000, d = 30."""
  generator = np.random.default_rng(seed)
  x = generator.standard_normal((2000, 30))
  x *= 100 / np.linalg.norm(x, axis=1, keepdims=True)
  theta = generator.standard_normal(30)
  y = x @ theta / np.linalg.norm(theta) + generator.standard_normal(2000)
  return objectives.LeastSquares(x, y, loss_scale=1 / 2000)


def _section_9_regrets(seed):
  """Returns the regret of Minibatch-SGD (L 50, rate 1), FedAvg (100, 0.1)."""
  f = _row_sum_data(seed)
  accountant = counter.Accountant(f, f.least_value)
  generator = np.random.default_rng(100 + seed)
  firsts = 200 * np.arange(10)[:, np.newaxis, np.newaxis]
  minibatch = fed_avg = accountant.initial_state()
  point = np.zeros(30)
  for _ in range(40):
    minibatch = accountant.add_points(minibatch, [point], [500])
    rows = (firsts + generator.integers(200, size=(10, 50, 1))).reshape(1, 500)
    point = point - f.step_gradients(rows[np.newaxis])(
        0, point[np.newaxis]
    )[0]
  point = np.zeros(30)
  for _ in range(20):
    rows = firsts + generator.integers(200, size=(10, 100, 1))
    paths, ends = counter.replay_local_steps(
        f, point, rows, counter.LocalRule(0.1)
    )
    fed_avg = accountant.add_paths(fed_avg, paths)
    point = ends.mean(axis=0)
  assert minibatch.num_queries == fed_avg.num_queries == 20000
  return minibatch.cumulative_regret, fed_avg.cumulative_regret


def test_synthetic_regrets_are_those_of_section_9():
  # Minibatch-SGD 152.7 (sd 4.4), FedAvg 58.5 (2.9), over 10 seeds each.
  regrets = [_section_9_regrets(seed) for seed in range(10)]
  minibatch, fed_avg = np.mean(regrets, axis=0)
  assert minibatch == pytest.approx(152.7, abs=4.4)
  assert fed_avg == pytest.approx(58.5, abs=2.9)
