"""Concatenated clients give back what went in."""

import numpy as np
import pytest

from baselines.tasks import clients


def _three_clients():
  data = [
      (np.arange(6.0).reshape(3, 2), np.array([0, 1, 2])),
      (np.zeros((0, 2)), np.array([], np.int64)),
      (np.array([[7.0, 8.0]]), np.array([5])),
  ]
  return data, clients.from_clients(['a', 'b', 'c'], data)


def test_take_returns_each_clients_examples():
  data, arrays = _three_clients()
  assert arrays.num_clients == 3
  np.testing.assert_array_equal(arrays.sizes, [3, 0, 1])
  for i, (x, y) in enumerate(data):
    assert arrays.num_examples(i) == len(x)
    taken_x, taken_y = arrays.take(i)
    np.testing.assert_array_equal(taken_x, x)
    np.testing.assert_array_equal(taken_y, y)
    assert taken_x.base is not None  # A view, not a copy.


def test_keys_belong_to_names():
  _, arrays = _three_clients()
  other = clients.ClientArrays(
      ('c', 'x'), (np.zeros((1, 2)), np.zeros(1)), np.array([0, 1, 1])
  )
  assert arrays.client_keys.dtype == np.uint64
  assert len(set(arrays.client_keys.tolist())) == 3
  assert arrays.client_keys[2] == other.client_keys[0]
  # Recorded: another number here means that old runs cannot be resumed.
  assert arrays.client_keys[0] == 3405396810240292928


@pytest.mark.parametrize(
    'offsets', [[0, 2], [1, 2, 4], [0, 3, 2, 4], [0, 2, 3, 3]]
)
def test_wrong_offsets_are_refused(offsets):
  with pytest.raises(ValueError, match='offsets must'):
    clients.ClientArrays(
        ('a', 'b', 'c'), (np.zeros(4), np.zeros(4)), np.array(offsets)
    )


def test_features_of_unequal_length_are_refused():
  with pytest.raises(ValueError, match='features .* got 4 and 3'):
    clients.ClientArrays(('a',), (np.zeros(4), np.zeros(3)), np.array([0, 4]))


@pytest.mark.parametrize('client_ids', [[], ['a', 'b']])
def test_names_must_match_clients(client_ids):
  with pytest.raises(ValueError, match='client_ids must name'):
    clients.from_clients(client_ids, [(np.zeros(1), np.zeros(1))])
