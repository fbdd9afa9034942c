"""Many clients' examples as one array per feature."""

from collections.abc import Callable, Sequence
import dataclasses
import functools
import hashlib

import numpy as np


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
  features: tuple[np.ndarray, np.ndarray]
  offsets: np.ndarray

  def __post_init__(self):
    x, y = self.features
    if len(x) != len(y):
      raise ValueError(
          'features must have equal first dimensions, got'
          f' {len(x)} and {len(y)}.'
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

  def take(self, i: int) -> tuple[np.ndarray, np.ndarray]:
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

  generate: Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]]


def from_clients(
    client_ids: Sequence[str],
    clients: Sequence[tuple[np.ndarray, np.ndarray]],
) -> ClientArrays:
  """Concatenates clients.

  Args:
    client_ids: The N names.
    clients: Each client's (x, y).

  Returns:
    The clients in the given order.

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
