"""Batches of epochs: each example once an epoch, short last batches."""

import numpy as np
import pytest

from tff_localupdate.local_update import epoch_draws


def draw(seed=0, num_examples=7, **changes):
  sizes = {'num_epochs': 2, 'batch_size': 3, 'num_padded_steps': 8, **changes}
  return epoch_draws.draw_epochs(
      np.random.default_rng(seed), num_examples, **sizes
  )


def test_each_example_comes_once_an_epoch():
  draws = draw()
  assert (draws.indices.shape, draws.indices.dtype) == ((8, 3), np.int64)
  assert draws.batch_sizes.dtype == np.int32
  np.testing.assert_array_equal(draws.batch_sizes, [3, 3, 1, 3, 3, 1, 0, 0])
  epochs = [
      np.concatenate([draws.indices[k, : draws.batch_sizes[k]] for k in steps])
      for steps in (range(3), range(3, 6))
  ]
  for epoch in epochs:
    np.testing.assert_array_equal(np.sort(epoch), range(7))
  assert epochs[0].tolist() != epochs[1].tolist()


def test_orders_are_uniform():
  """Of 6 orders of 3 examples each comes within 4 deviations of its share."""
  orders = [
      tuple(draw(seed, 3, num_epochs=1, batch_size=1).indices[:3, 0])
      for seed in range(3000)
  ]
  _, counts = np.unique(orders, axis=0, return_counts=True)
  assert len(counts) == 6
  assert np.abs(counts - 500).max() < 4 * np.sqrt(3000 * 5 / 36)


def test_small_client_takes_one_full_step_an_epoch():
  draws = draw(num_examples=2, num_epochs=3, batch_size=5)
  np.testing.assert_array_equal(draws.batch_sizes, [2] * 3 + [0] * 5)
  np.testing.assert_array_equal(
      np.sort(draws.indices[:3, :2]), [[0, 1]] * 3
  )


def test_client_without_examples_has_no_batch():
  draws = draw(num_examples=0)
  assert not draws.batch_sizes.any() and not draws.indices.any()


@pytest.mark.parametrize(
    'num_examples, num_epochs, batch_size, steps',
    [(7, 2, 3, 6), (6, 2, 3, 4), (2, 5, 20, 5), (0, 5, 20, 0), (1, 1, 1, 1)],
)
def test_number_of_steps(num_examples, num_epochs, batch_size, steps):
  assert epoch_draws.count_steps(num_examples, num_epochs, batch_size) == steps


@pytest.mark.parametrize(
    'changes, message',
    [
        ({'num_examples': -1}, 'num_examples must .* found -1'),
        ({'num_epochs': 0}, 'num_epochs must .* found 0'),
        ({'batch_size': 1.5}, 'batch_size must .* found 1.5'),
        ({'num_padded_steps': 5}, 'num_padded_steps must be .* = 6, found 5'),
    ],
)
def test_arguments_are_checked(changes, message):
  with pytest.raises(ValueError, match=message):
    draw(**changes)
