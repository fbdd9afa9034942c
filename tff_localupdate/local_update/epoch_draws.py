"""Which examples make the batches of a client's epochs; NumPy only."""

from typing import NamedTuple

import numpy as np

from tff_localupdate import arguments


class EpochDraws(NamedTuple):
  """The batches of one client for one round, as indices of its examples.

  Attributes:
    indices: int64 [K_max, B]; 0 where no example counts.
    batch_sizes: int32 [K_max], how many of each row count; 0 behind the last.
  """

  indices: np.ndarray
  batch_sizes: np.ndarray


def count_steps(num_examples: int, num_epochs: int, batch_size: int) -> int:
  """Returns K_i = E ceil(n_i / B)."""
  return num_epochs * -(-num_examples // batch_size)


def draw_epochs(
    generator: np.random.Generator,
    num_examples: int,
    *,
    num_epochs: int,
    batch_size: int,
    num_padded_steps: int,
) -> EpochDraws:
  """Draws E epochs, each one a new random order of all examples.

  Args:
    generator: Draws the E orders, and nothing else.
    num_examples: n_i, the examples of the client; 0 gives no batch.
    num_epochs: E.
    batch_size: B; the last batch of each epoch has what is left.
    num_padded_steps: K_max.

  Raises:
    ValueError: If a number is out of its range, or K_max is below K_i.
  """
  arguments.check_not_negative('num_examples', num_examples)
  arguments.check_count('num_epochs', num_epochs)
  arguments.check_count('batch_size', batch_size)
  num_steps = count_steps(num_examples, num_epochs, batch_size)
  if num_padded_steps < num_steps:
    raise ValueError(
        f'num_padded_steps must be at least E ceil(n / B) = {num_steps}, found '
        f'{num_padded_steps}.'
    )
  num_per_epoch = num_steps // num_epochs
  indices = np.zeros([num_padded_steps, batch_size], np.int64)
  sizes = np.zeros([num_padded_steps], np.int32)
  for epoch in range(num_epochs):
    steps = slice(epoch * num_per_epoch, (epoch + 1) * num_per_epoch)
    rows = np.zeros([num_per_epoch * batch_size], np.int64)
    rows[:num_examples] = generator.permutation(num_examples)
    indices[steps] = rows.reshape([num_per_epoch, batch_size])
    starts = batch_size * np.arange(num_per_epoch)
    sizes[steps] = np.minimum(num_examples - starts, batch_size)
  return EpochDraws(indices, sizes)
