"""Concatenated clients give back what went in."""

from concurrent import futures

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


class _Store:
  """Reads clients of 0, 1, 2, ... examples, and keeps a record."""

  def __init__(self, num_clients=6):
    self.reads = []
    self.sizes = range(num_clients)
    self.client_ids = [f'c{i}' for i in self.sizes]

  def read(self, client_ids):
    self.reads.append(list(client_ids))
    numbers = [int(name[1:]) for name in client_ids]
    return [(np.full((n, 2), n, np.float64), np.arange(n)) for n in numbers]

  def lazy(self, **kwargs):
    return clients.LazyClients(
        self.client_ids, self.sizes, self.read, **kwargs
    )


def test_lazy_clients_are_read_when_they_are_asked_for():
  store = _Store()
  lazy = store.lazy()
  assert lazy.num_clients == 6 and lazy.sizes.tolist() == [0, 1, 2, 3, 4, 5]
  assert not store.reads
  arrays = lazy.load(np.array([4, 0, 2]))
  assert arrays.client_ids == ('c4', 'c0', 'c2')
  assert arrays.sizes.tolist() == [4, 0, 2]
  np.testing.assert_array_equal(arrays.take(2)[0], [[2, 2], [2, 2]])
  np.testing.assert_array_equal(arrays.take(0)[1], [0, 1, 2, 3])
  again = lazy.load(np.array([2, 5]))
  assert store.reads == [['c4', 'c0', 'c2'], ['c5']]
  np.testing.assert_array_equal(again.take(0)[0], arrays.take(2)[0])


def test_what_is_kept_is_bounded_and_the_last_used_stay():
  store = _Store()
  # Client n has 24 n bytes.
  lazy = store.lazy(cache_bytes=24 * 7)
  for position in (2, 4, 2, 3):  # The last one drives out 4, not 2.
    lazy.load(np.array([position]))
  assert store.reads == [['c2'], ['c4'], ['c3']]
  lazy.load(np.array([2, 3]))
  assert len(store.reads) == 3
  lazy.load(np.array([4, 2, 3]))  # Needed together, more than is kept.
  assert store.reads[3:] == [['c4']]
  assert lazy._cached_bytes <= 24 * 7
  assert lazy._cached_bytes == sum(
      x.nbytes + y.nbytes for x, y in lazy._cache.values()
  )


def test_memory_does_not_grow_with_the_clients_that_are_drawn():
  store = _Store(40)
  lazy = store.lazy(cache_bytes=24 * 80)
  for position in range(40):
    lazy.load(np.array([position]))
    assert lazy._cached_bytes <= 24 * 80


def test_what_is_kept_owns_its_memory():
  x, y = np.zeros((4, 2)), np.zeros(4)
  lazy = clients.LazyClients(
      ['a', 'b'], [1, 3], lambda _: [(x[:1], y[:1]), (x[1:], y[1:])]
  )
  lazy.load(np.array([0, 1]))
  for features in lazy._cache.values():
    assert all(feature.base is None for feature in features)


def test_lazy_clients_in_several_threads():
  store = _Store()
  lazy = store.lazy(cache_bytes=24 * 6)

  def load(seed):
    order = np.random.default_rng(seed).permutation(6)[:4]
    arrays = lazy.load(order)
    return arrays.sizes.tolist() == order.tolist() and all(
        (arrays.take(i)[0] == n).all() for i, n in enumerate(order)
    )

  with futures.ThreadPoolExecutor(4) as executor:
    assert all(executor.map(load, range(200)))


@pytest.mark.parametrize('positions', [[0, 0], [6], [-1]])
def test_wrong_positions_are_refused(positions):
  with pytest.raises(ValueError, match='must be distinct, from 0 to 5'):
    _Store().lazy().load(np.array(positions))


def test_no_positions_are_refused():
  with pytest.raises(ValueError, match='at least one'):
    _Store().lazy().load(np.array([], np.int64))


def test_sample_is_fixed_and_in_order():
  lazy = _Store(40).lazy()
  first, again = lazy.sample(10), _Store(40).lazy().sample(10)
  assert first.client_ids == again.client_ids
  assert len(set(first.client_ids)) == 10
  numbers = [int(name[1:]) for name in first.client_ids]
  assert numbers == sorted(numbers) and numbers != list(range(10))
  # A larger sample holds the smaller one.
  assert set(first.client_ids) < set(lazy.sample(20).client_ids)
  assert lazy.sample(100).num_clients == 40


def test_client_of_another_size_is_damaged():
  store = _Store()
  lazy = clients.LazyClients(store.client_ids, [0, 1, 2, 9, 4, 5], store.read)
  with pytest.raises(ValueError, match="'c3' should hold 9 examples, found 3"):
    lazy.load(np.array([2, 3]))


@pytest.mark.parametrize('client_ids, sizes', [([], []), (['a'], [1, 2])])
def test_lazy_clients_need_names_and_sizes(client_ids, sizes):
  with pytest.raises(ValueError, match='sizes must have one entry for each'):
    clients.LazyClients(client_ids, sizes, lambda _: [])
