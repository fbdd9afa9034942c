"""What the objectives share: checks, blocks, digests."""

import numpy as np
import pytest

from baselines.regret import objectives

_FEATURES = np.arange(6.0).reshape(3, 2)


@pytest.mark.parametrize('total, size, expected', [
    (5, 2, [2, 2, 1]), (3, 0, [1, 1, 1]), (2, 9, [2]), (0, 3, []),
])
def test_blocks_cover_all_once(total, size, expected):
  found = [np.arange(total)[block] for block in objectives.blocks(total, size)]
  assert [len(part) for part in found] == expected
  assert np.array_equal(np.concatenate([[], *found]), np.arange(total))


@pytest.mark.parametrize('arguments, expected', [
    ({'features': np.ones(3)}, r'features must have shape .* found \(3,\)'),
    ({'features': np.ones((0, 2))}, 'features must have shape'),
    ({'features': [[np.nan, 1], [0, 1], [1, 1]]}, 'features must be finite'),
    ({'labels': np.ones((3, 1))}, r'labels must have shape \(3,\), found'),
    ({'example_weights': [1, 1]}, 'example_weights must be 3 finite'),
    ({'example_weights': [1, -1, 1]}, 'example_weights must be'),
    ({'example_weights': [1, np.inf, 1]}, 'example_weights must be'),
    ({'example_weights': [0, 0, 0]}, 'example_weights must be'),
])
def test_bad_examples_are_refused(arguments, expected):
  sound = {'features': _FEATURES, 'labels': np.ones(3)}
  with pytest.raises(ValueError, match=expected):
    objectives.LeastSquares(**{**sound, **arguments})


@pytest.mark.parametrize('points', [np.ones(2), np.ones((1, 3))])
def test_bad_points_are_refused(points):
  with pytest.raises(ValueError, match=r'here must have shape \[P, 2\], found'):
    objectives.checked_points('here', points, 2)


def test_digest_tells_shapes_numbers_and_kinds_apart():
  array = np.arange(6.0)
  digests = {
      objectives.digest_of('a', (1.0,), array),
      objectives.digest_of('b', (1.0,), array),
      objectives.digest_of('a', (2.0,), array),
      objectives.digest_of('a', (1.0,), array.reshape(2, 3)),
      objectives.digest_of('a', (1.0,), array.reshape(2, 3).T),
      objectives.digest_of('a', (1.0,), array.astype(np.float32)),
  }
  assert len(digests) == 6
  assert objectives.digest_of('a', (1.0,), np.arange(6.0)) in digests


@pytest.mark.parametrize('build, dimension', [
    (lambda x: objectives.LeastSquares(x, x[:, 0] - 1, 0.3), 5),
    (lambda x: objectives.SoftmaxRegression(
        x, np.arange(10) % 3, 3, 0.5), 15),
])
def test_gradients_of_steps_are_those_of_their_batches(build, dimension):
  generator = np.random.default_rng(4)
  objective = build(generator.standard_normal((10, 5)))
  points = generator.standard_normal((2, dimension))
  rows = generator.integers(10, size=(2, 3, 4))
  gradients = objective.step_gradients(rows)
  for step in range(3):
    np.testing.assert_array_equal(
        gradients(step, points),
        objective.step_gradients(rows[:, step : step + 1])(0, points),
    )
