"""The deal uses every example once and leaves no client empty."""

import numpy as np
import pytest

from baselines.tasks import partition

_LABELS = np.repeat(np.arange(10), 60)


@pytest.mark.parametrize('num_clients', [1, 7, 10, 20, 100, 600])
def test_every_example_once_and_no_client_empty(num_clients):
  for seed in range(3):
    deal = partition.dirichlet_partition(_LABELS, num_clients, seed)
    assert len(deal) == num_clients
    assert min(len(rows) for rows in deal) >= 1
    together = np.sort(np.concatenate(deal))
    np.testing.assert_array_equal(together, np.arange(len(_LABELS)))


def test_deal_is_a_function_of_the_seed():
  first = partition.dirichlet_partition(_LABELS, 20, 4)
  again = partition.dirichlet_partition(_LABELS, 20, 4)
  other = partition.dirichlet_partition(_LABELS, 20, 5)
  assert all(np.array_equal(a, b) for a, b in zip(first, again))
  assert not all(np.array_equal(a, b) for a, b in zip(first, other))


def test_sizes_are_unequal_and_labels_skewed():
  deal = partition.dirichlet_partition(_LABELS, 20, 1)
  sizes = np.array([len(rows) for rows in deal])
  assert sizes.max() > 3 * sizes.min()
  most_common = [np.bincount(_LABELS[rows]).max() for rows in deal]
  # An even deal would give a tenth.
  assert np.median(most_common / sizes) > 0.3


@pytest.mark.parametrize('num_clients', [0, -1, 601])
def test_impossible_number_of_clients_is_refused(num_clients):
  with pytest.raises(ValueError, match=f'1 to 600.*got {num_clients}'):
    partition.dirichlet_partition(_LABELS, num_clients, 0)
