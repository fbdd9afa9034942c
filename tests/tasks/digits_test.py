"""Digits: every example once, a deal by seed, small models."""

import types

import numpy as np
import pytest
from sklearn import datasets

from baselines.tasks import digits

_LABELS = np.repeat(np.arange(10), 60)


@pytest.mark.parametrize('num_clients', [1, 7, 10, 20, 100, 600])
def test_deal_gives_every_example_to_one_client_none_empty(num_clients):
  for seed in range(3):
    deal = digits.dirichlet_partition(_LABELS, num_clients, seed)
    assert len(deal) == num_clients
    assert min(len(rows) for rows in deal) >= 1
    together = np.sort(np.concatenate(deal))
    np.testing.assert_array_equal(together, np.arange(len(_LABELS)))


def test_dirichlet_deal_is_a_function_of_the_seed():
  first = digits.dirichlet_partition(_LABELS, 20, 4)
  again = digits.dirichlet_partition(_LABELS, 20, 4)
  other = digits.dirichlet_partition(_LABELS, 20, 5)
  assert all(np.array_equal(a, b) for a, b in zip(first, again))
  assert not all(np.array_equal(a, b) for a, b in zip(first, other))


def test_sizes_are_unequal_and_labels_skewed():
  deal = digits.dirichlet_partition(_LABELS, 20, 1)
  sizes = np.array([len(rows) for rows in deal])
  assert sizes.max() > 3 * sizes.min()
  most_common = [np.bincount(_LABELS[rows]).max() for rows in deal]
  # An even deal would give a tenth.
  assert np.median(most_common / sizes) > 0.3


@pytest.mark.parametrize('num_clients', [0, -1, 601])
def test_impossible_number_of_clients_is_refused(num_clients):
  with pytest.raises(ValueError, match=f'1 to 600.*got {num_clients}'):
    digits.dirichlet_partition(_LABELS, num_clients, 0)


@pytest.mark.parametrize('num_clients', [1, 7, 10, 20, 100])
def test_every_example_once_and_no_client_empty(num_clients):
  train, test = digits.load(num_clients, data_seed=3)
  assert train.num_clients == num_clients
  assert train.sizes.min() >= 1
  assert train.sizes.sum() == 1528 and test.sizes.tolist() == [269]
  images = datasets.load_digits()
  expected = np.column_stack([images.target, images.data / 16.0])
  found = np.concatenate([
      np.column_stack([y, x.reshape(len(x), 64)])
      for x, y in (train.features, test.features)
  ])

  def rows(matrix):
    return sorted(map(tuple, matrix.tolist()))

  assert rows(found) == rows(expected)


def test_deal_belongs_to_the_data_seed():
  def content(seed):
    return [
        (arrays.features[0].tobytes(), arrays.offsets.tobytes())
        for arrays in digits.load(100, seed)
    ]

  assert content(0) == content(0)
  first, other = content(0), content(1)
  assert first[0] != other[0] and first[1] != other[1]


def test_clients_differ_in_size_and_labels():
  train, _ = digits.load(100, data_seed=0)
  assert train.sizes.max() > 3 * np.median(train.sizes)
  largest = int(np.argmax(train.sizes))
  counts = np.bincount(train.take(largest)[1], minlength=10)
  assert counts.max() > 2 * counts.mean()


def test_types_and_range():
  train, test = digits.load(10, data_seed=0)
  for x, y in (train.features, test.features):
    assert x.shape[1:] == (8, 8, 1) and x.dtype == np.float32
    assert y.dtype == np.int32
    assert x.min() == 0.0 and x.max() == 1.0
    assert set(y.tolist()) == set(range(10))


@pytest.mark.parametrize('model, size', [('cnn', 6090), ('logistic', 650)])
def test_build(model, size):
  task = digits.build(types.SimpleNamespace(
      task='digits', model=model, data_source='embedded', data_dir=None,
      data_seed=0,
  ))
  assert task.train.num_clients == 100
  assert task.convolutional == (model == 'cnn')
  weights, _ = task.build_model(0, 'float32').initial_weights
  assert sum(w.size for w in weights) == size
