"""Draws are pure functions of (seed, round, client), and uniform."""

from concurrent import futures

import numpy as np
import pytest

from baselines.training import sampling

_KNOWN_CLIENTS = [98, 28, 74, 79, 38]
_KNOWN_EXAMPLES = [[38, 51, 13], [46, 67, 5]]


def test_cohort_is_without_replacement_and_in_range():
  for round_num in range(50):
    cohort = sampling.sample_clients(3, round_num, 12, 10)
    assert cohort.shape == (10,)
    assert cohort.dtype == np.int64
    assert len(set(cohort.tolist())) == 10
    assert cohort.min() >= 0 and cohort.max() < 12


@pytest.mark.parametrize('clients_per_round', [1, 2, 99, 100, 101])
def test_whole_population_can_be_drawn(clients_per_round):
  cohort = sampling.sample_clients(0, 1, clients_per_round, clients_per_round)
  assert sorted(cohort) == list(range(clients_per_round))


def test_every_client_is_drawn_equally_often():
  rounds = 4000
  counts = np.zeros(7)
  for round_num in range(rounds):
    counts[sampling.sample_clients(1, round_num, 7, 3)] += 1
  expected = rounds * 3 / 7
  # Standard deviation of a count is about 31.
  assert np.abs(counts - expected).max() < 5 * 31


def test_draws_do_not_depend_on_earlier_draws():
  alone = sampling.sample_clients(5, 17, 100, 10)
  for round_num in range(17):
    sampling.sample_clients(5, round_num, 100, 10)
  np.testing.assert_array_equal(sampling.sample_clients(5, 17, 100, 10), alone)


def test_known_draws():
  # Recorded: another number here means that old runs cannot be resumed.
  np.testing.assert_array_equal(
      sampling.sample_clients(1, 2, 100, 5), _KNOWN_CLIENTS
  )
  np.testing.assert_array_equal(
      sampling.draw_examples(1, 2, 3, 100, 2, 3), _KNOWN_EXAMPLES
  )


@pytest.mark.parametrize('seed', [0, 1, 2**40])
@pytest.mark.parametrize('dtype', [np.int64, np.uint64])
def test_numpy_seeds_equal_python_seeds(seed, dtype):
  np.testing.assert_array_equal(
      sampling.sample_clients(dtype(seed), np.int32(4), dtype(50), dtype(9)),
      sampling.sample_clients(seed, 4, 50, 9),
  )
  np.testing.assert_array_equal(
      sampling.draw_examples(dtype(seed), 4, np.uint64(2**63), 50, 3, 2),
      sampling.draw_examples(seed, 4, 2**63, 50, 3, 2),
  )


def test_seeds_rounds_and_clients_differ():
  draws = [
      tuple(sampling.draw_examples(seed, round_num, key, 10**6, 2, 5).ravel())
      for seed in (0, 1, -1, 2**70)
      for round_num in (0, 1, 2)
      for key in (0, 1, 2**64 - 1)
  ]
  assert len(set(draws)) == len(draws)


def test_iid_clients_follow_their_weights():
  weights = np.array([0.0, 1.0, 3.0])
  counts = np.zeros(3)
  for round_num in range(500):
    cohort = sampling.sample_clients_iid(1, round_num, 3, 8, weights)
    assert cohort.shape == (8,)
    counts += np.bincount(cohort, minlength=3)
  assert counts[0] == 0
  # Standard deviation of a count is about 27.
  assert abs(counts[1] - 1000) < 5 * 27


def test_iid_clients_are_uniform_by_default_and_repeat():
  cohort = sampling.sample_clients_iid(0, 1, 5, 4000)
  counts = np.bincount(cohort, minlength=5)
  assert np.abs(counts - 800).max() < 5 * 26
  np.testing.assert_array_equal(
      cohort, sampling.sample_clients_iid(np.int64(0), 1, 5, 4000)
  )
  assert not np.array_equal(
      cohort, sampling.sample_clients_iid(0, 2, 5, 4000)
  )


@pytest.mark.parametrize(
    'weights',
    [[1], [1, -1], [0, 0], [1, np.nan], [np.inf, 1], [[1, 1]]],
)
def test_bad_weights_are_refused(weights):
  with pytest.raises(ValueError, match='weights must be 2 finite numbers'):
    sampling.sample_clients_iid(1, 1, 2, 2, np.array(weights))


def test_new_clients_have_numbers_of_their_own():
  drawn = {
      sampling.client_generator(seed, round_num, slot).random()
      for seed in (0, 1)
      for round_num in range(3)
      for slot in range(3)
  }
  assert len(drawn) == 18
  again = sampling.client_generator(np.int64(1), 2, 0).random()
  assert again == sampling.client_generator(1, 2, 0).random()


def test_draws_do_not_depend_on_those_before_or_in_other_threads():
  def draw():
    return sampling.draw_examples(3, 2, 1, 1000, 5, 7).tolist()

  generator = sampling.client_generator(3, 2, 1)
  expected = sampling.client_generator(3, 2, 1).integers(9, size=6).tolist()
  alone = draw()
  sampling.sample_clients(5, 1, 10, 3)
  assert draw() == alone
  assert generator.integers(9, size=6).tolist() == expected
  with futures.ThreadPoolExecutor(4) as pool:
    found = [f.result() for f in [pool.submit(draw) for _ in range(200)]]
  assert found == [alone] * 200


def test_repeats_of_a_client_draw_independently():
  drawn = {
      tuple(sampling.draw_examples(1, 1, 1, 9, 2, 5, repeat=r).ravel())
      for r in range(5)
  }
  assert len(drawn) == 5


def test_examples_are_uniform_and_with_replacement():
  counts = np.zeros(5)
  repeats = 0
  for round_num in range(400):
    drawn = sampling.draw_examples(1, round_num, 9, 5, 2, 5)
    assert drawn.shape == (2, 5)
    counts += np.bincount(drawn.ravel(), minlength=5)
    repeats += len(set(drawn[0].tolist())) < 5
  # A shuffled epoch never repeats; with replacement 96 % of the batches do.
  assert 360 < repeats < 400
  assert np.abs(counts - 800).max() < 5 * 26


def test_client_with_one_example_repeats_it():
  drawn = sampling.draw_examples(1, 1, 1, 1, 3, 4)
  np.testing.assert_array_equal(drawn, np.zeros((3, 4)))


@pytest.mark.parametrize('seed', [True, 1.0, None, '1', np.bool_(True)])
def test_seed_that_is_no_integer_is_refused(seed):
  with pytest.raises(TypeError, match='seed must be an integer'):
    sampling.sample_clients(seed, 1, 10, 2)
  with pytest.raises(TypeError, match='seed must be an integer'):
    sampling.draw_examples(seed, 1, 1, 10, 2, 2)


def test_too_many_clients_per_round_names_both_numbers():
  with pytest.raises(ValueError, match='at most the number.*10, got 11'):
    sampling.sample_clients(1, 1, 10, 11)


@pytest.mark.parametrize(
    'argument',
    ['round_num', 'client_key', 'num_examples', 'num_steps', 'batch_size'],
)
def test_number_out_of_range_is_named(argument):
  numbers = dict(
      seed=1, round_num=1, client_key=1, num_examples=5, num_steps=2,
      batch_size=3,
  )
  with pytest.raises(ValueError, match=f'{argument} must be at least'):
    sampling.draw_examples(**{**numbers, argument: -1})


def _epochs(seed=3, round_num=1, client_key=7, **kwargs):
  return sampling.draw_epochs(
      seed, round_num, client_key, 10, 2, 4, 8, **kwargs
  )


def test_epochs_hold_every_example_once_each():
  indices, sizes = _epochs()
  # E = 2 epochs of ceil(10 / 4) = 3 batches, padded to 8.
  assert sizes.tolist() == [4, 4, 2, 4, 4, 2, 0, 0]
  epochs = [
      np.concatenate([indices[k][: sizes[k]] for k in batches])
      for batches in (range(3), range(3, 6))
  ]
  assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(10))
  assert not np.array_equal(*epochs)
  assert not indices[6:].any()


def test_epochs_are_a_function_of_seed_round_client_and_repeat():
  np.testing.assert_array_equal(_epochs().indices, _epochs().indices)
  for other in (
      {'seed': 4}, {'round_num': 2}, {'client_key': 8}, {'repeat': 1}
  ):
    assert not np.array_equal(_epochs().indices, _epochs(**other).indices)


@pytest.mark.parametrize('wrong, kind', [
    ({'seed': 1.0}, TypeError), ({'round_num': -1}, ValueError),
    ({'client_key': True}, TypeError), ({'repeat': -1}, ValueError),
])
def test_epochs_of_bad_arguments_are_refused(wrong, kind):
  (name,) = wrong
  with pytest.raises(kind, match=name):
    _epochs(**wrong)
