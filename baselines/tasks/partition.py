"""Deals a labelled data set to clients of unequal size with label skew."""

import numpy as np


def dirichlet_partition(
    labels: np.ndarray,
    num_clients: int,
    seed: int,
    *,
    label_concentration: float = 0.5,
    size_concentration: float = 2.0,
) -> list[np.ndarray]:
  """Deals every example to exactly one client; none stays empty.

  Each client gets a share of the data (symmetric Dirichlet over clients) and a
  mixture of labels (symmetric Dirichlet over labels); an example of label k
  goes to client i with probability proportional to share_i * mixture_i[k].
  Clients that got nothing then take one example each from the largest.

  Args:
    labels: The labels, [N].
    num_clients: Number of clients, 1 to N.
    seed: Seed of the deal, at least 0.
    label_concentration: Small values give each client few labels.
    size_concentration: Small values give very unequal clients.

  Returns:
    For each client the positions of its examples, rising.

  Raises:
    ValueError: If num_clients is out of range.
  """
  if not 1 <= num_clients <= len(labels):
    raise ValueError(
        f'num_clients must be 1 to {len(labels)}, the number of examples, got'
        f' {num_clients}.'
    )
  generator = np.random.default_rng(seed)
  classes, label_index = np.unique(labels, return_inverse=True)
  shares = generator.dirichlet([size_concentration] * num_clients)
  mixtures = generator.dirichlet(
      [label_concentration] * len(classes), size=num_clients
  )
  # The smallest positive number keeps a label that no mixture has dealable.
  weights = shares[:, np.newaxis] * mixtures + np.finfo(np.float64).tiny
  owner = np.empty(len(labels), np.int64)
  for k in range(len(classes)):
    rows = np.flatnonzero(label_index == k)
    probabilities = weights[:, k] / weights[:, k].sum()
    owner[rows] = generator.choice(num_clients, len(rows), p=probabilities)
  _fill_empty(owner, num_clients)
  return [np.flatnonzero(owner == i) for i in range(num_clients)]


def _fill_empty(owner: np.ndarray, num_clients: int) -> None:
  """Gives each empty client the last example of the largest client."""
  counts = np.bincount(owner, minlength=num_clients)
  for i in np.flatnonzero(counts == 0):
    largest = int(np.argmax(counts))
    owner[np.flatnonzero(owner == largest)[-1]] = i
    counts[largest] -= 1
    counts[i] += 1
