"""Cohorts are right whatever the thread that draws them does."""

import random
import threading
import time

import numpy as np
import pytest

from baselines.tasks import clients
from baselines.training import data
from baselines.training import sampling


def _population(sizes=(3, 1, 0, 6, 2)):
  """Examples that tell which they are: x = (client, position), y = both."""
  examples = [
      (
          np.stack([np.full(n, i + 1.0), np.arange(1.0, n + 1)], 1),
          np.arange(1, n + 1) + 100 * (i + 1),
      )
      for i, n in enumerate(sizes)
  ]
  return clients.from_clients([f'c{i}' for i in range(len(sizes))], examples)


def _draw(arrays, round_num=1, **kwargs):
  arguments = dict(
      seed=7, clients_per_round=4, num_steps=3, batch_size=2, **kwargs
  )
  return data.draw_cohort(arrays, round_num=round_num, **arguments)


def test_each_client_gets_its_own_examples():
  arrays = _population()
  seen_empty = 0
  for round_num in range(10):
    cohort = sampling.sample_clients(7, round_num, 5, 4)
    value = _draw(arrays, round_num)
    x, y = value.batches
    assert x.shape == (4, 3, 2, 2) and y.shape == (4, 3, 2)
    assert x.dtype == arrays.features[0].dtype
    assert value.num_examples.dtype == np.int32
    np.testing.assert_array_equal(value.num_examples, arrays.sizes[cohort])
    for slot, i in enumerate(cohort):
      if arrays.sizes[i]:
        rows = sampling.draw_examples(
            7, round_num, arrays.client_keys[i], arrays.sizes[i], 3, 2
        )
        np.testing.assert_array_equal(x[slot], arrays.take(i)[0][rows])
        np.testing.assert_array_equal(y[slot], arrays.take(i)[1][rows])
      else:
        assert not x[slot].any() and not y[slot].any()
        seen_empty += 1
  assert seen_empty


def test_all_clients_empty():
  value = _draw(_population((0, 0, 0, 0)), full=True)
  assert value.batches[0].shape == (4, 3, 2, 2)
  assert not value.batches[0].any() and not value.num_examples.any()
  assert value.examples[0].shape == (4, 1, 2)


def test_full_adds_all_examples_padded_to_a_power_of_two():
  arrays = _population((3, 1, 0, 6))
  cohort = sampling.sample_clients(7, 1, 4, 4)
  value = _draw(arrays, full=True)
  x, y = value.examples
  assert x.shape == (4, 8, 2) and y.shape == (4, 8)
  for slot, i in enumerate(cohort):
    n = arrays.sizes[i]
    np.testing.assert_array_equal(x[slot, :n], arrays.take(i)[0])
    np.testing.assert_array_equal(y[slot, :n], arrays.take(i)[1])
    assert not x[slot, n:].any() and not y[slot, n:].any()
  drawn = _draw(arrays)
  np.testing.assert_array_equal(value.batches[0], drawn.batches[0])


@pytest.mark.parametrize(
    'largest, width', [(1, 1), (2, 2), (3, 4), (4, 4), (5, 8), (64, 64)]
)
def test_few_padded_sizes(largest, width):
  value = _draw(_population((1, 1, 1, largest)), full=True)
  assert value.examples[0].shape[1] == width


def test_a_clients_draw_does_not_depend_on_the_population():
  few, many = _population((2, 5)), _population((2, 5, 1, 1))
  drawn = []
  for arrays in (few, many):
    value = data.draw_cohort(
        arrays, seed=7, round_num=2, clients_per_round=arrays.num_clients,
        num_steps=3, batch_size=2,
    )
    slot = np.flatnonzero(value.num_examples == 5)[0]
    drawn.append(value.batches[1][slot])
  np.testing.assert_array_equal(*drawn)


def test_too_many_clients_per_round():
  with pytest.raises(ValueError, match='3, got 4'):
    _draw(_population((1, 1, 1)))


def test_iid_cohorts_with_weights():
  value = data.draw_cohort(
      _population(), seed=7, round_num=1, clients_per_round=50, num_steps=2,
      batch_size=3, client_sampling='iid',
      client_weights=np.array([1.0, 0.0, 0.0, 1.0, 0.0]),
  )
  assert set(value.num_examples.tolist()) == {3, 6}
  # A client that occurs again draws its batches anew.
  large = value.batches[1][value.num_examples == 6]
  assert len({tuple(batch.ravel()) for batch in large}) == len(large)


def test_generated_clients_are_new_in_each_round():
  population = clients.ClientGenerator(
      lambda g: (g.random((3, 2)), np.arange(3))
  )
  values = [_draw(population, round_num) for round_num in (1, 1, 2)]
  assert values[0].batches[0].shape == (4, 3, 2, 2)
  assert values[0].num_examples.tolist() == [3] * 4
  np.testing.assert_array_equal(values[0].batches[0], values[1].batches[0])
  first, other = (set(v.batches[0].ravel()) for v in values[1:])
  assert not first & other


@pytest.mark.parametrize(
    'arguments, message',
    [
        (dict(client_sampling='all'), "client_sampling must be .* got 'all'"),
        (dict(client_weights=np.ones(5)), 'client_weights .* be ignored'),
    ],
)
def test_settings_that_make_no_sense_are_refused(arguments, message):
  with pytest.raises(ValueError, match=message):
    _draw(_population(), **arguments)


def _prefetch_threads():
  return [t for t in threading.enumerate() if t.name.startswith('prefetch')]


def test_prefetched_cohorts_are_equal_under_random_delays():
  arrays = _population()
  delays = random.Random(0)

  def draw(round_num):
    time.sleep(delays.choice([0, 0, 0.02]))
    return _draw(arrays, round_num)

  with data.Prefetcher(draw, range(1, 21)) as prefetcher:
    rounds = []
    for round_num, value in prefetcher:
      time.sleep(delays.choice([0, 0, 0.02]))
      rounds.append(round_num)
      expected = _draw(arrays, round_num)
      np.testing.assert_array_equal(value.batches[0], expected.batches[0])
      np.testing.assert_array_equal(value.num_examples, expected.num_examples)
  assert rounds == list(range(1, 21))
  assert not _prefetch_threads()


def test_next_round_is_drawn_while_the_caller_works():
  drawn = {i: threading.Event() for i in range(1, 5)}

  def draw(round_num):
    drawn[round_num].set()
    return round_num

  with data.Prefetcher(draw, range(1, 5)) as prefetcher:
    assert next(prefetcher) == (1, 1)
    assert drawn[2].wait(5)
    # One round ahead, not more: a cohort is held in memory.
    assert not drawn[3].wait(0.05)


def test_error_reaches_the_caller_at_its_round():
  def draw(round_num):
    if round_num == 3:
      raise OSError('disk gone')
    return round_num

  with data.Prefetcher(draw, range(1, 10)) as prefetcher:
    assert next(prefetcher) == (1, 1)
    assert next(prefetcher) == (2, 2)
    with pytest.raises(OSError, match='disk gone'):
      next(prefetcher)
  assert not _prefetch_threads()


def test_no_thread_is_left_when_the_loop_stops_early():
  with pytest.raises(KeyError):
    with data.Prefetcher(lambda r: time.sleep(0.05), range(100)) as prefetcher:
      for _ in prefetcher:
        raise KeyError
  assert not _prefetch_threads()


def test_close_may_be_called_twice_and_ends_iteration():
  prefetcher = data.Prefetcher(lambda r: r, range(5))
  next(prefetcher)
  prefetcher.close()
  prefetcher.close()
  assert not _prefetch_threads()
  with pytest.raises(RuntimeError, match='closed'):
    next(prefetcher)


def test_no_rounds():
  with data.Prefetcher(lambda r: r, range(0)) as prefetcher:
    assert not list(prefetcher)
  assert not _prefetch_threads()


def test_rows_say_where_the_examples_of_the_batches_are():
  arrays = _population((3, 1, 6, 2))
  value = _draw(arrays)
  assert value.rows.shape == (4, 3, 2) and value.rows.dtype == np.int64
  for batch, feature in zip(value.batches, arrays.features):
    np.testing.assert_array_equal(batch, feature[value.rows])
  assert value.examples is None and value.batch_sizes is None


def test_rows_of_new_clients_are_those_of_the_cohort():
  population = clients.ClientGenerator(
      lambda g: (g.random((3, 2)), np.arange(3))
  )
  value = _draw(population)
  for slot in range(4):
    assert set(value.rows[slot].ravel()) <= set(range(3 * slot, 3 * slot + 3))


@pytest.mark.parametrize('sizes', [(3, 1, 6, 2), (3, 0, 6, 2)])
def test_more_rows_are_zeros_behind_the_same_batches(sizes):
  arrays = _population(sizes)
  value, padded = _draw(arrays), _draw(arrays, num_rows=5)
  np.testing.assert_array_equal(padded.rows, value.rows)
  for found, expected in zip(padded.batches, value.batches):
    assert found.shape[:3] == (4, 5, 2) and found.dtype == expected.dtype
    np.testing.assert_array_equal(found[:, :3], expected)
    assert not found[:, 3:].any()


def test_no_steps_draw_no_rows():
  value = data.draw_cohort(
      _population((3, 1, 6, 2)), seed=7, round_num=1, clients_per_round=4,
      num_steps=0, num_rows=16, batch_size=2,
  )
  assert value.rows.shape == (4, 0, 2)
  assert value.batches[0].shape == (4, 16, 2, 2)
  assert not value.batches[0].any()


def test_fewer_steps_are_the_first_of_more():
  # So the last round of a horizon queries what a whole one would have.
  arrays = _population((3, 1, 6, 2))
  few, many = (
      data.draw_cohort(
          arrays, seed=7, round_num=1, clients_per_round=4, num_steps=steps,
          batch_size=2,
      ).rows
      for steps in (2, 5)
  )
  np.testing.assert_array_equal(few, many[:, :2])


def test_epochs_draw_each_clients_own_examples_without_replacement():
  arrays = _population((3, 1, 0, 6))
  value = data.draw_cohort(
      arrays, seed=7, round_num=1, clients_per_round=4, num_steps=6,
      num_epochs=2, batch_size=2,
  )
  cohort = sampling.sample_clients(7, 1, 4, 4)
  assert value.batch_sizes.shape == (4, 6)
  assert value.batch_sizes.dtype == np.int32
  for slot, i in enumerate(cohort):
    counts = value.batch_sizes[slot]
    assert counts.sum() == 2 * arrays.sizes[i]
    labels = np.concatenate(
        [y[:n] for y, n in zip(value.batches[1][slot], counts)]
    )
    assert sorted(labels) == sorted(2 * arrays.take(i)[1].tolist())


@pytest.mark.parametrize('arguments', [
    {}, {'full': True}, {'client_sampling': 'iid'},
])
def test_clients_that_are_read_draw_as_those_in_memory(arguments):
  arrays = _population()
  read = []

  def read_clients(names):
    read.append(list(names))
    return [arrays.take(arrays.client_ids.index(name)) for name in names]

  lazy = clients.LazyClients(arrays.client_ids, arrays.sizes, read_clients)
  for round_num in range(1, 6):
    found = _draw(lazy, round_num, **arguments)
    expected = _draw(arrays, round_num, **arguments)
    np.testing.assert_array_equal(found.num_examples, expected.num_examples)
    for kind in ('batches', 'examples'):
      for leaf, other in zip(
          getattr(found, kind) or (), getattr(expected, kind) or ()
      ):
        np.testing.assert_array_equal(leaf, other)
  # Each client is read once, for the rounds that it is in.
  names = sum(read, [])
  assert len(set(names)) == len(names) <= 5
