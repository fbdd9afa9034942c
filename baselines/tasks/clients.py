"""Many clients' examples as one array per feature."""

import collections
from collections.abc import Callable, Iterable, Sequence
import dataclasses
import functools
import hashlib
import threading
from typing import Union

import numpy as np

Examples = tuple[np.ndarray, np.ndarray]

_CACHE_BYTES = 256 * 2**20


@dataclasses.dataclass(frozen=True, eq=False)
class ClientArrays:
  """The examples of N clients, concatenated in the order of the clients.

  Client i holds the rows `offsets[i]:offsets[i + 1]` of both features. One
  array per feature instead of one data set per client: thousands of clients
  cost no objects, a cohort is one gather, and an evaluation is large slices.

  Attributes:
    client_ids: The N names.
    features: The pair (x, y); arrays with equal first dimension.
    offsets: int64 [N + 1], starts with 0, does not decrease, ends with the
      number of examples.
  """

  client_ids: tuple[str, ...]
  features: Examples
  offsets: np.ndarray

  def __post_init__(self):
    x, y = self.features
    if len(x) != len(y):
      raise ValueError(
          f'features must have equal first dimensions, got {len(x)} and'
          f' {len(y)}.'
      )
    if len(self.offsets) != len(self.client_ids) + 1:
      raise ValueError(
          'offsets must have one entry more than client_ids, got'
          f' {len(self.offsets)} and {len(self.client_ids)}.'
      )
    if (
        self.offsets[0] != 0
        or self.offsets[-1] != len(x)
        or np.any(np.diff(self.offsets) < 0)
    ):
      raise ValueError(
          f'offsets must rise from 0 to {len(x)}, the number of examples, got'
          f' {self.offsets}.'
      )

  @property
  def num_clients(self) -> int:
    """N."""
    return len(self.client_ids)

  @functools.cached_property
  def sizes(self) -> np.ndarray:
    """Examples held by each client, int64 [N]."""
    return np.diff(self.offsets)

  @functools.cached_property
  def client_keys(self) -> np.ndarray:
    """A digest of each client's name, uint64 [N].

    Draws depend on the name, not on the position, so a client keeps its
    mini-batches when others are added or left out.
    """
    digests = (
        hashlib.blake2b(client_id.encode(), digest_size=8).digest()
        for client_id in self.client_ids
    )
    return np.frombuffer(b''.join(digests), '<u8').astype(np.uint64)

  def num_examples(self, i: int) -> int:
    """Returns how many examples client i holds."""
    return int(self.sizes[i])

  def cohort(
      self, positions: np.ndarray
  ) -> tuple['ClientArrays', np.ndarray]:
    """Returns clients that hold those at `positions`, and where they are."""
    return self, positions

  def take(self, i: int) -> Examples:
    """Returns client i's examples (x, y), as views."""
    rows = slice(self.offsets[i], self.offsets[i + 1])
    x, y = self.features
    return x[rows], y[rows]


@dataclasses.dataclass(frozen=True)
class ClientGenerator:
  """An endless population: clients are made when they are drawn.

  Attributes:
    generate: `(random numbers) -> (x, y)`, one new client's examples; pure
      apart from the random numbers that it takes.
  """

  generate: Callable[[np.random.Generator], Examples]

  @property
  def num_clients(self) -> None:
    """There is no number of clients."""
    return None


class LazyClients:
  """N clients whose examples are read when they are asked for.

  Memory holds the clients' names and sizes, and the examples of those that were
  asked for last, up to a limit. May be used from several threads.

  Attributes:
    client_ids: The N names.
    sizes: Examples held by each client, int64 [N].
  """

  def __init__(
      self,
      client_ids: Sequence[str],
      sizes: Sequence[int],
      read: Callable[[Sequence[str]], Sequence[Examples]],
      cache_bytes: int = _CACHE_BYTES,
  ):
    """Initializes at least one client; reads nothing.

    `read` maps names to each one's examples (x, y); it is pure, and called by
    one thread at a time. Of what it read, `cache_bytes` are kept.

    Raises:
      ValueError: If the numbers of names and sizes differ, or no client is
        given.
    """
    if not client_ids or len(client_ids) != len(sizes):
      raise ValueError(
          'sizes must have one entry for each of client_ids, at least one, got'
          f' {len(sizes)} for {len(client_ids)}.'
      )
    self.client_ids = tuple(client_ids)
    self.sizes = np.array(sizes, np.int64)
    self._read = read
    self._cache_bytes = cache_bytes
    self._cache: collections.OrderedDict[int, Examples] = (
        collections.OrderedDict()
    )
    self._cached_bytes = 0
    self._lock = threading.Lock()

  @property
  def num_clients(self) -> int:
    """N."""
    return len(self.client_ids)

  def cohort(
      self, positions: np.ndarray
  ) -> tuple[ClientArrays, np.ndarray]:
    """Reads the clients at `positions`, and returns where each of them is."""
    distinct, places = np.unique(positions, return_inverse=True)
    return self.load(distinct), places

  def load(self, positions: np.ndarray) -> ClientArrays:
    """Reads clients.

    Takes their positions among all and returns them in the given order.

    Raises:
      ValueError: If a position is out of range or occurs twice, or a client
        does not hold as many examples as it should.
    """
    positions = np.asarray(positions).tolist()
    if len(set(positions)) != len(positions) or not all(
        0 <= i < self.num_clients for i in positions
    ):
      raise ValueError(
          'positions must be distinct, from 0 to'
          f' {self.num_clients - 1}, got {positions}.'
      )
    with self._lock:
      missing = [i for i in positions if i not in self._cache]
      found = dict(zip(missing, self._read_clients(missing)))
      for i in positions:
        if i not in found:
          found[i] = self._cache[i]
          self._cache.move_to_end(i)
      self._keep(missing, found)
    return from_clients(
        [self.client_ids[i] for i in positions], [found[i] for i in positions]
    )

  def sample(self, count: int) -> ClientArrays:
    """Reads the first `count` clients of a fixed random order, or all.

    The order depends on N alone. The clients come in their own order.
    """
    order = np.random.default_rng(0).permutation(self.num_clients)
    return self.load(np.sort(order[:count]))

  def _read_clients(self, positions: Sequence[int]) -> Sequence[Examples]:
    if not positions:
      return ()
    examples = self._read([self.client_ids[i] for i in positions])
    if len(examples) != len(positions):
      raise ValueError(
          f'the data are damaged: of {len(positions)} clients '
          f'{len(examples)} were found.'
      )
    for i, (x, _) in zip(positions, examples):
      if len(x) != self.sizes[i]:
        raise ValueError(
            f'the data are damaged: client {self.client_ids[i]!r} should hold'
            f' {self.sizes[i]} examples, found {len(x)}.'
        )
    # Copies: a view would keep alive all that was read together.
    return [(np.array(x), np.array(y)) for x, y in examples]

  def _keep(
      self, positions: Iterable[int], found: dict[int, Examples]
  ) -> None:
    """Puts clients into the cache; the ones unused longest make room."""
    for i in positions:
      self._cache[i] = found[i]
      self._cached_bytes += _num_bytes(found[i])
    while self._cached_bytes > self._cache_bytes:
      self._cached_bytes -= _num_bytes(self._cache.popitem(last=False)[1])


def _num_bytes(examples: Examples) -> int:
  return sum(feature.nbytes for feature in examples)


# What training draws clients from.
Population = Union[ClientArrays, ClientGenerator, LazyClients]


def equal_parts(features: Examples, num_clients: int) -> ClientArrays:
  """Deals a multiple of `num_clients` examples, in their order."""
  size = len(features[0]) // num_clients
  return ClientArrays(
      client_ids=client_names(num_clients),
      features=features,
      offsets=np.arange(num_clients + 1, dtype=np.int64) * size,
  )


def client_names(num_clients: int) -> tuple[str, ...]:
  """Returns the names of clients that have none of their own."""
  return tuple(f'client_{i:04d}' for i in range(num_clients))


def from_clients(
    client_ids: Sequence[str],
    clients: Sequence[Examples],
) -> ClientArrays:
  """Concatenates clients: their N names, and the (x, y) of each.

  Raises:
    ValueError: If the numbers of names and clients differ, or no client is
      given.
  """
  if not clients or len(client_ids) != len(clients):
    raise ValueError(
        'client_ids must name each of the clients, at least one, got'
        f' {len(client_ids)} names for {len(clients)} clients.'
    )
  sizes = [len(x) for x, _ in clients]
  return ClientArrays(
      client_ids=tuple(client_ids),
      features=(
          np.concatenate([x for x, _ in clients]),
          np.concatenate([y for _, y in clients]),
      ),
      offsets=np.cumsum([0] + sizes, dtype=np.int64),
  )
