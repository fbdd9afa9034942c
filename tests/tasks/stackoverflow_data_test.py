"""Users are read when they are drawn, and are those of TFF."""

import shutil
import types

import numpy as np
import pytest
import tensorflow_federated as tff

from baselines.tasks import databases
from baselines.tasks import registry
from baselines.tasks import stackoverflow_data
from baselines.tasks import vocabularies
from tests.tasks import database_cases

_DATABASE = databases.STACKOVERFLOW.file_name


def _config(data_source='synthetic', data_dir=None, task='stackoverflow_tag'):
  return types.SimpleNamespace(
      task=task, data_source=data_source, data_dir=data_dir, data_seed=None,
      model='lstm' if task == 'stackoverflow_word' else 'logistic',
  )


def _encode(sentences):
  """Keeps sentences as they are: (tokens, title)."""
  return (
      np.array(sentences.tokens, object), np.array(sentences.titles, object)
  )


@pytest.fixture(name='folder')
def _folder(shared_data):
  return str(shared_data / 'tff_cache')


def test_synthetic_users_are_tffs():
  splits = stackoverflow_data.open_splits(_config(), _encode)
  client_data = tff.simulation.datasets.stackoverflow.get_synthetic()
  assert list(splits.lazy.client_ids) == client_data.client_ids
  assert splits.train.sizes.tolist() == splits.test.sizes.tolist() == [3, 3, 2]
  for i, name in enumerate(client_data.client_ids):
    dataset = client_data.create_tf_dataset_for_client(name)
    tokens = [e['tokens'] for e in dataset.as_numpy_iterator()]
    assert splits.lazy.load(np.array([i])).features[0].tolist() == tokens


def test_splits_are_those_of_the_database(tmp_path):
  database_cases.write_posts(tmp_path)
  splits = stackoverflow_data.open_splits(
      _config('cache', str(tmp_path)), _encode
  )
  every = splits.lazy.load(np.arange(splits.lazy.num_clients))
  for arrays, split in (
      (every, 'train'), (splits.train, 'train'), (splits.test, 'test')
  ):
    users = {
        name: posts for (of, name), posts in database_cases.POSTS.items()
        if of == split
    }
    assert arrays.client_ids == tuple(users)
    for i, posts in enumerate(users.values()):
      found = [feature.tolist() for feature in arrays.take(i)]
      assert found == [[post[0] for post in posts], [post[1] for post in posts]]


def test_words_and_tags_are_counted_in_the_train_split(tmp_path):
  database_cases.write_posts(tmp_path)
  words, tags, _ = stackoverflow_data.load_vocabularies(
      _config('cache_counted', str(tmp_path))
  )
  # By users: both have cat, the and java, one has dog and sql.
  assert words == ('cat', 'the', 'dog') and tags == ('java', 'sql')


def test_real_users_are_tffs(folder):
  splits = stackoverflow_data.open_splits(_config('cache', folder), _encode)
  train, _, test = tff.simulation.datasets.stackoverflow.load_data(folder)
  assert list(splits.lazy.client_ids) == train.client_ids
  assert splits.lazy.sizes.sum() == 10_624 and splits.lazy.num_clients == 89
  assert splits.test.sizes.sum() == 1_651 and splits.test.num_clients == 30
  for client_data, arrays in (
      (train, splits.lazy.load(np.array([70, 3]))),
      (test, splits.test),
  ):
    for i in range(0, arrays.num_clients, 10):
      dataset = client_data.create_tf_dataset_for_client(arrays.client_ids[i])
      expected = [
          (e['tokens'], e['title']) for e in dataset.as_numpy_iterator()
      ]
      assert list(zip(*arrays.take(i))) == expected


def test_what_is_evaluated_is_a_fixed_sample_of_100(folder, monkeypatch):
  monkeypatch.setattr(stackoverflow_data, 'EVALUATED_CLIENTS', 7)
  first, again = (
      stackoverflow_data.open_splits(_config('cache', folder), _encode)
      for _ in range(2)
  )
  assert first.lazy.num_clients == 89
  assert first.train.num_clients == first.test.num_clients == 7
  assert first.train.client_ids == again.train.client_ids
  assert first.train.client_ids != first.lazy.client_ids[:7]


def test_opening_reads_no_sentence(folder):
  path = f'{folder}/{_DATABASE}'
  seen = []

  def encode(sentences):
    seen.extend(sentences.tokens)
    return _encode(sentences)

  lazy = stackoverflow_data.open_split(path, 'train', encode)
  assert lazy.num_clients == 89 and not seen
  arrays = lazy.load(np.array([5]))
  assert len(seen) == lazy.sizes[5] == arrays.sizes[0]


def test_real_vocabularies_are_tffs(folder):
  words, tags, digests = stackoverflow_data.load_vocabularies(
      _config('cache', folder)
  )
  with open(f'{folder}/datasets/stackoverflow.word_count') as file:
    lines = [line.split() for line in file]
  assert list(words) == [word for word, _ in lines[:10_000]]
  assert len(tags) == 500 and tags[0] == 'discussion'
  assert digests == {
      'stackoverflow.word_count':
          'e8dfd27c1155a0ebfa925d7459a5ab40'
          'eab7ccf87d1db48390882b1636002d84',
      'stackoverflow.tag_count':
          'e404073153c66a06f7b52f3c7f566ac9'
          '8b13212c4fc1de48f5d6834595965570',
  }


def test_word_prediction_needs_no_tags(folder, tmp_path):
  shutil.copyfile(f'{folder}/{_DATABASE}', tmp_path / _DATABASE)
  (tmp_path / 'stackoverflow.word_count').write_bytes(b'the 9\nof 8\n')
  config = _config('cache', str(tmp_path), 'stackoverflow_word')
  stackoverflow_data.fetch(config)
  words, tags, digests = stackoverflow_data.load_vocabularies(config)
  assert words == ('the', 'of') and tags is None
  assert list(digests) == ['stackoverflow.word_count']
  with pytest.raises(FileNotFoundError, match='stackoverflow.tag_count'):
    registry.build_task(_config('cache', str(tmp_path)))


def test_counted_vocabularies(folder):
  # Independent of the implementation: through TFF, user by user.
  client_data, *_ = tff.simulation.datasets.stackoverflow.load_data(folder)
  users = {'tokens': {}, 'tags': {}}
  for name in client_data.client_ids:
    dataset = client_data.create_tf_dataset_for_client(name)
    for e in dataset.as_numpy_iterator():
      for field, separator in (('tokens', ' '), ('tags', '|')):
        for entry in e[field].decode().split(separator):
          users[field].setdefault(entry, set()).add(name)
  words, tags, digests = stackoverflow_data.load_vocabularies(
      _config('cache_counted', folder)
  )
  for field, entries, size in (('tokens', words, 10_000), ('tags', tags, 500)):
    counts = {entry: len(names) for entry, names in users[field].items()}
    ranked = sorted(counts, key=lambda entry: (-counts[entry], entry))
    assert list(entries) == ranked[:size]
  assert set(digests) == {v.name for v in (
      vocabularies.WORD_COUNTS, vocabularies.TAG_COUNTS
  )}


def test_download_fetches_database_and_counts_once(
    folder, tmp_path, monkeypatch
):
  fetched = []

  def load_data(cache_dir):
    fetched.append('database')
    shutil.copyfile(f'{folder}/{_DATABASE}', f'{cache_dir}/{_DATABASE}')

  def ensure_counts(file, data_dir):
    fetched.append(file.name)
    with open(f'{data_dir}/{file.name}', 'w') as stream:
      stream.write('the 2\n' if 'word' in file.name else '{"java": 1}')

  monkeypatch.setattr(
      tff.simulation.datasets.stackoverflow, 'load_data', load_data
  )
  monkeypatch.setattr(
      stackoverflow_data.downloads, 'ensure_counts', ensure_counts
  )
  config = _config('download', str(tmp_path))
  stackoverflow_data.fetch(config)
  assert fetched == [
      'stackoverflow.word_count', 'stackoverflow.tag_count', 'database'
  ]
  words, tags, _ = stackoverflow_data.load_vocabularies(config)
  assert words == ('the',) and tags == ('java',)
  assert stackoverflow_data.open_splits(config, _encode).lazy.num_clients == 89
