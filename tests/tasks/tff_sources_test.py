"""Where clients come from, by the name of the source."""

import types

import numpy as np
import pytest

from baselines.tasks import clients
from baselines.tasks import databases
from baselines.tasks import tff_sources

_SPEC = databases.CIFAR100


def _clients(name):
  features = (np.zeros((1, 2)), np.zeros(1))
  return clients.from_clients([name], [features])


def _load(data_source, data_dir, load_data=None):
  read = []

  def read_split(path, split):
    read.append((path, split))
    return _clients(split)

  splits = tff_sources.load_splits(
      _SPEC,
      types.SimpleNamespace(data_source=data_source, data_dir=data_dir),
      load_data=load_data,
      make_synthetic=lambda: _clients('synthetic'),
      read_split=read_split,
  )
  return [part.client_ids for part in splits], read


def test_synthetic_clients_are_both_splits_and_nothing_is_read():
  assert _load('synthetic', None) == ([('synthetic',)] * 2, [])


def test_cache_is_read_split_by_split(tmp_path):
  path = str(tmp_path / _SPEC.file_name)
  splits = [_SPEC.train_split, _SPEC.test_split]
  assert _load('cache', str(tmp_path)) == (
      [(split,) for split in splits], [(path, split) for split in splits]
  )


def test_download_that_leaves_no_file_is_an_error(tmp_path):
  with pytest.raises(Exception, match=_SPEC.file_name):
    _load('download', str(tmp_path), load_data=lambda cache_dir: None)
