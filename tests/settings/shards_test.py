"""Shards are runs of neighbours that make up the whole."""

import pytest

from baselines.settings import commands


@pytest.mark.parametrize('num_points', [0, 1, 7, 8, 25])
@pytest.mark.parametrize('count', [1, 2, 3, 8])
def test_shards_make_up_all_points_in_order(num_points, count):
  points = list(range(num_points))
  parts = [
      commands.shard_of(points, f'{i}/{count}') for i in range(1, count + 1)
  ]
  assert sum(parts, []) == points
  sizes = [len(part) for part in parts]
  assert max(sizes) - min(sizes) <= 1


def test_second_of_two_shards_of_five():
  assert commands.shard_of('abcde', '1/2') == ['a', 'b']
  assert commands.shard_of('abcde', '2/2') == ['c', 'd', 'e']
  assert commands.shard_of('abcde', None) == list('abcde')
  assert commands.parse_shard('2/8') == (2, 8)


@pytest.mark.parametrize('text', ['', '2', '/2', '2/', 'a/b', '-1/2', '1/2/3',
                                  '1.0/2', ' 1/2'])
def test_other_texts_are_refused(text):
  with pytest.raises(ValueError, match='shard must be i/n, such as 2/8, found'):
    commands.parse_shard(text)


@pytest.mark.parametrize('text', ['0/2', '3/2', '1/0'])
def test_shards_that_do_not_exist_are_refused(text):
  with pytest.raises(ValueError, match='1 <= i <= n'):
    commands.parse_shard(text)
