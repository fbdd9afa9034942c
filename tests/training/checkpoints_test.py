"""Checkpoints come back bit for bit, or are known to be damaged."""

import numpy as np
import pytest

from baselines.training import checkpoints

_LEAVES = [
    np.float32([[1.5, -0.0], [np.nan, np.inf]]),
    np.float64(1e-300),
    np.int64(2**62),
    np.zeros([0, 3], np.float32),
]


def _equal(found, expected):
  return len(found) == len(expected) and all(
      a.dtype == np.asarray(b).dtype
      and a.shape == np.shape(b)
      and a.tobytes() == np.asarray(b).tobytes()
      for a, b in zip(found, expected)
  )


def test_leaves_come_back_bit_for_bit_in_order(tmp_path):
  many = [np.float32(i) for i in range(12)]
  checkpoints.save(tmp_path, 3, _LEAVES + many)
  assert _equal(checkpoints.load(tmp_path, 3), _LEAVES + many)


def test_two_newest_are_kept(tmp_path):
  for round_num in (2, 4, 10, 12):
    checkpoints.save(tmp_path / 'c', round_num, _LEAVES)
  assert checkpoints.saved_rounds(tmp_path / 'c') == [10, 12]
  assert checkpoints.saved_rounds(tmp_path / 'none') == []


def test_later_ones_that_were_passed_over_make_room(tmp_path):
  for round_num in (4, 8, 6):
    checkpoints.save(tmp_path, round_num, _LEAVES)
  assert checkpoints.saved_rounds(tmp_path) == [4, 6]


def _cut(data):
  return data[: len(data) // 2]


def _flip(data):
  middle = len(data) // 2
  return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


@pytest.mark.parametrize('damage', [_cut, _flip, lambda data: b''])
def test_damaged_newest_falls_back_and_says_so(tmp_path, damage):
  checkpoints.save(tmp_path, 5, [np.arange(100.0)])
  checkpoints.save(tmp_path, 7, [np.arange(100.0) + 1])
  newest = tmp_path / 'round_00000007.npz'
  newest.write_bytes(damage(newest.read_bytes()))
  with pytest.raises(ValueError, match='damaged'):
    checkpoints.load(tmp_path, 7)
  reports = []
  round_num, leaves = checkpoints.load_newest(tmp_path, 9, reports.append)
  assert round_num == 5
  assert _equal(leaves, [np.arange(100.0)])
  assert len(reports) == 1 and 'round_00000007.npz is damaged' in reports[0]


def test_checkpoint_under_the_name_of_another_round_is_damaged(tmp_path):
  checkpoints.save(tmp_path, 5, _LEAVES)
  (tmp_path / 'round_00000005.npz').rename(tmp_path / 'round_00000006.npz')
  with pytest.raises(ValueError, match='its digest differs'):
    checkpoints.load(tmp_path, 6)


def test_checkpoint_after_the_last_row_is_passed_over(tmp_path):
  checkpoints.save(tmp_path, 5, _LEAVES)
  checkpoints.save(tmp_path, 7, _LEAVES)
  reports = []
  assert checkpoints.load_newest(tmp_path, 6, reports.append)[0] == 5
  assert 'round 7' in reports[0]
  assert checkpoints.load_newest(tmp_path, 4, reports.append) is None


def test_missing_file_is_not_called_damaged(tmp_path):
  with pytest.raises(FileNotFoundError):
    checkpoints.load(tmp_path, 1)
