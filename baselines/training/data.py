"""A round's client data as tensors, drawn ahead of the round."""

import collections
from collections.abc import Callable, Iterable, Iterator
from concurrent import futures
import functools
from typing import Any, NamedTuple, Optional

import numpy as np

from baselines.tasks import clients
from baselines.training import sampling

WITHOUT_REPLACEMENT = 'without_replacement'
IID = 'iid'


class Drawn(NamedTuple):
  """What is drawn for a round.

  As `baselines.algorithms.driver.CohortData`, and besides

  Attributes:
    rows: int64 [M, K, B], where the examples of the batches are among those of
      the population; of clients that are made or read for the round, among
      those of the cohort.
  """

  batches: Any
  num_examples: np.ndarray
  examples: Any
  rows: np.ndarray
  batch_sizes: Optional[np.ndarray] = None


def draw_cohort(
    population: clients.Population,
    *,
    seed: int,
    round_num: int,
    clients_per_round: int,
    num_steps: int,
    batch_size: int,
    num_rows: Optional[int] = None,
    num_epochs: Optional[int] = None,
    full: bool = False,
    client_sampling: str = WITHOUT_REPLACEMENT,
    client_weights: Optional[np.ndarray] = None,
) -> Drawn:
  """Draws the round's clients and their mini-batches: a pure function.

  Indices are drawn first, then all clients' examples are copied in one gather.
  The tensors of a client without examples are zeros.

  Args:
    population: A generator makes new clients, lazy ones are read from their
      file.
    seed: Seed of the sampling.
    round_num: The round t.
    clients_per_round: M.
    num_steps: K.
    batch_size: B.
    num_rows: N, at least K; None is K. The batches after the K-th are of zeros.
    num_epochs: E, to draw K_max = `num_steps` batches in epochs, without
      replacement in one; None to draw with replacement.
    full: Whether each client's value also carries all its examples (for
      `loss_before_training='full'`), padded with zeros to a power of two that
      the cohort's largest client fits in, so that few shapes occur.
    client_sampling: 'without_replacement' (within the round) or 'iid'; a
      generator's clients are always independent.
    client_weights: [N], the clients' weights for 'iid'; uniform by default.

  Raises:
    TypeError: If a number is not an integer.
    ValueError: If one is out of range, M exceeds the population, or weights are
      given that would be ignored.
  """
  arrays, cohort = _draw_clients(
      population, seed, round_num, clients_per_round, client_sampling,
      client_weights,
  )
  rows, batch_sizes = _draw_rows(
      arrays, cohort, seed, round_num, num_steps, batch_size, num_epochs
  )
  sizes = arrays.sizes[cohort]
  if num_rows in (None, num_steps):
    gather = _gather
  else:
    gather = functools.partial(_gather_into, num_rows=num_rows)
  batches = tuple(
      gather(feature, rows, sizes > 0) for feature in arrays.features
  )
  num_examples = sizes.astype(np.int32)
  if not full:
    return Drawn(batches, num_examples, None, rows, batch_sizes)
  example_rows, real = _padded_rows(arrays, cohort)
  examples = tuple(
      _gather(feature, example_rows, real) for feature in arrays.features
  )
  return Drawn(batches, num_examples, examples, rows, batch_sizes)


def _draw_clients(
    population: clients.Population,
    seed: int,
    round_num: int,
    clients_per_round: int,
    client_sampling: str,
    client_weights: Optional[np.ndarray],
) -> tuple[clients.ClientArrays, np.ndarray]:
  """Returns clients and the positions of the cohort [M] among them."""
  if client_sampling not in (WITHOUT_REPLACEMENT, IID):
    raise ValueError(
        f'client_sampling must be {WITHOUT_REPLACEMENT!r} or {IID!r}, got'
        f' {client_sampling!r}.'
    )
  is_generator = population.num_clients is None
  if client_weights is not None and (is_generator or client_sampling != IID):
    raise ValueError(
        f'client_weights must be given with client_sampling={IID!r} and a'
        ' finite population only; they would be ignored.'
    )
  if is_generator:
    slots = range(clients_per_round)
    made = [
        population.generate(sampling.client_generator(seed, round_num, slot))
        for slot in slots
    ]
    names = [f'new_{slot}' for slot in slots]
    return clients.from_clients(names, made), np.arange(clients_per_round)
  arguments = (seed, round_num, population.num_clients, clients_per_round)
  if client_sampling == IID:
    cohort = sampling.sample_clients_iid(*arguments, client_weights)
  else:
    cohort = sampling.sample_clients(*arguments)
  return population.cohort(cohort)


def _draw_rows(
    arrays: clients.ClientArrays,
    cohort: np.ndarray,
    seed: int,
    round_num: int,
    num_steps: int,
    batch_size: int,
    num_epochs: Optional[int],
) -> tuple[np.ndarray, Optional[np.ndarray]]:
  """Returns the batches' rows [M, K, B], and in epochs their sizes [M, K]."""
  rows = np.zeros((len(cohort), num_steps, batch_size), np.int64)
  batch_sizes = np.zeros(rows.shape[:2], np.int32) if num_epochs else None
  if not num_steps:
    return rows, batch_sizes
  occurrences = collections.Counter()
  # Python's integers, which are checked faster than NumPy's.
  keys, sizes = arrays.client_keys[cohort], arrays.sizes[cohort]
  for slot, (i, key, size) in enumerate(
      zip(cohort.tolist(), keys.tolist(), sizes.tolist())
  ):
    if size:
      draw = (seed, round_num, key, size)
      repeat = occurrences[i]
      if num_epochs:
        drawn, batch_sizes[slot] = sampling.draw_epochs(
            *draw, num_epochs, batch_size, num_steps, repeat=repeat
        )
      else:
        drawn = sampling.draw_examples(
            *draw, num_steps, batch_size, repeat=repeat
        )
      rows[slot] = arrays.offsets[i] + drawn
    occurrences[i] += 1
  return rows, batch_sizes


def _gather(
    feature: np.ndarray, rows: np.ndarray, real: np.ndarray
) -> np.ndarray:
  """Returns `feature[rows]` with zeros where `real` is False."""
  if not len(feature):  # All clients are empty: there is no row to point at.
    return np.zeros(rows.shape + feature.shape[1:], feature.dtype)
  gathered = feature[rows]
  if not real.all():
    gathered[~real] = 0
  return gathered


def _gather_into(
    feature: np.ndarray, rows: np.ndarray, real: np.ndarray, num_rows: int
) -> np.ndarray:
  """Returns `_gather` of [M, K, B] with zeros behind: [M, num_rows, B, ...]."""
  shape = (len(rows), num_rows, *rows.shape[2:], *feature.shape[1:])
  gathered = np.zeros(shape, feature.dtype)
  for i in np.flatnonzero(real):
    # With clip, NumPy writes to the place at once, without a copy.
    place = gathered[i, : rows.shape[1]]
    np.take(feature, rows[i], axis=0, out=place, mode='clip')
  return gathered


def _padded_rows(
    arrays: clients.ClientArrays, cohort: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
  """Returns the rows of each client's examples [M, N], and which are real."""
  sizes = arrays.sizes[cohort]
  width = 1 << max(int(sizes.max()) - 1, 0).bit_length()
  position = np.arange(width)
  real = position < sizes[:, np.newaxis]
  rows = arrays.offsets[cohort][:, np.newaxis] + position
  return np.where(real, rows, 0), real


class Prefetcher:
  """Draws the next round's data in a thread while a round runs.

  Iterating yields (round, value) in order. The draw is a pure function of the
  round, so the thread's speed cannot matter; what it raises is raised when its
  round is asked for. Use as a context manager, or call `close`: either waits
  for the thread to end, also when the loop stops early.
  """

  def __init__(self, draw: Callable[[int], Any], rounds: Iterable[int]):
    """Starts drawing the first of the rounds."""
    self._draw = draw
    self._rounds = iter(rounds)
    self._executor = futures.ThreadPoolExecutor(
        1, thread_name_prefix='prefetch'
    )
    self._closed = False
    self._pending: Optional[tuple[int, futures.Future]] = None
    self._submit()

  def _submit(self) -> None:
    round_num = next(self._rounds, None)
    self._pending = (
        None
        if round_num is None
        else (round_num, self._executor.submit(self._draw, round_num))
    )

  def __iter__(self) -> Iterator[tuple[int, Any]]:
    return self

  def __next__(self) -> tuple[int, Any]:
    """Returns the next round and its data, and starts on the one after."""
    if self._closed:
      raise RuntimeError('The prefetcher is closed.')
    if self._pending is None:
      raise StopIteration
    round_num, future = self._pending
    try:
      value = future.result()
    except BaseException:
      self.close()
      raise
    self._submit()
    return round_num, value

  def close(self) -> None:
    """Ends the thread; does nothing the second time."""
    self._closed = True
    self._pending = None
    self._executor.shutdown(wait=True, cancel_futures=True)

  def __enter__(self) -> 'Prefetcher':
    return self

  def __exit__(self, *exc_info: Any) -> None:
    self.close()
