"""Counts are read as TFF reads them, and nothing is ever deleted."""

import hashlib
import io
import tarfile

import pytest

from baselines.tasks import vocabularies

_WORDS, _TAGS = vocabularies.WORD_COUNTS, vocabularies.TAG_COUNTS
_LINES = b'the 30\nof 20\na 10\nzebra 10\n'


@pytest.fixture(name='folder', params=['.', 'datasets'])
def _folder(tmp_path, request):
  folder = tmp_path / request.param
  folder.mkdir(exist_ok=True)
  return folder


def _write_archive(folder, content=_LINES, name=_WORDS.name):
  path = folder / (name + '.tar.bz2')
  with tarfile.open(path, 'w:bz2') as archive:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    archive.addfile(info, io.BytesIO(content))
  return path


def _own_file(path):
  """Takes this archive for the one that TFF publishes."""
  digest = hashlib.sha256(path.read_bytes()).hexdigest()
  return vocabularies.CountFile(_WORDS.name, digest)


def test_plain_files(tmp_path, folder):
  (folder / _WORDS.name).write_bytes(_LINES)
  (folder / _TAGS.name).write_bytes(b'{"c": 2, "java": 9, "ada": 2}')
  words = vocabularies.load(str(tmp_path), _WORDS, 3)
  assert words.entries == ('the', 'of', 'a')
  assert words.digest == hashlib.sha256(_LINES).hexdigest()
  # Ties stay as they are in the file, as TFF has them.
  tags = vocabularies.load(str(tmp_path), _TAGS, 500)
  assert tags.entries == ('java', 'c', 'ada')


def test_archive_of_tff_is_read_and_left_alone(tmp_path, folder):
  path = _write_archive(folder)
  file = _own_file(path)
  vocabularies.check(str(tmp_path), file)
  words = vocabularies.load(str(tmp_path), file, 2)
  assert words.entries == ('the', 'of')
  assert words.digest == file.archive_sha256
  assert list(folder.iterdir()) == [path]


def test_plain_file_comes_before_the_archive(tmp_path, folder):
  file = _own_file(_write_archive(folder))
  (folder / file.name).write_bytes(b'mine 1\n')
  words = vocabularies.load(str(tmp_path), file, 2)
  assert words.entries == ('mine',)
  assert words.digest == hashlib.sha256(b'mine 1\n').hexdigest()


@pytest.mark.parametrize('with_plain_file', [False, True])
def test_other_archive_is_refused_and_not_deleted(
    tmp_path, folder, with_plain_file
):
  path = _write_archive(folder)
  if with_plain_file:
    (folder / _WORDS.name).write_bytes(_LINES)
  digest = hashlib.sha256(path.read_bytes()).hexdigest()
  for call in (
      lambda: vocabularies.check(str(tmp_path), _WORDS),
      lambda: vocabularies.check(str(tmp_path), _WORDS, required=False),
      lambda: vocabularies.load(str(tmp_path), _WORDS, 2),
  ):
    with pytest.raises(ValueError, match="not TFF's archive") as info:
      call()
    for part in (str(path), digest, _WORDS.archive_sha256):
      assert part in str(info.value)
  assert path.exists()


def test_missing_counts(tmp_path):
  with pytest.raises(FileNotFoundError, match='neither stackoverflow.word'):
    vocabularies.check(str(tmp_path), _WORDS)
  vocabularies.check(str(tmp_path), _WORDS, required=False)
  assert not vocabularies.is_present(str(tmp_path), _WORDS)


@pytest.mark.parametrize(
    'file, content',
    [
        (_WORDS, b'the\n'),
        (_WORDS, b'the many\n'),
        (_WORDS, b'a 3\nthe 7\n'),
        (_WORDS, b'\xff\xfe 3\n'),
        (_WORDS, b''),
        (_TAGS, b'the 3\n'),
        (_TAGS, b'["java"]'),
        (_TAGS, b'{"java": "many"}'),
        (_TAGS, b'{}'),
    ],
)
def test_files_of_another_format(tmp_path, file, content):
  (tmp_path / file.name).write_bytes(content)
  with pytest.raises(ValueError, match='not hold counts|no counts') as info:
    vocabularies.load(str(tmp_path), file, 5)
  assert file.name in str(info.value)


def test_count_takes_what_most_users_have():
  users = [{'b', 'a', 'rare'}, {'a'}, {'c', 'b', 'a'}, {'c'}]
  vocabulary = vocabularies.count(users, 3)
  assert vocabulary.entries == ('a', 'b', 'c')
  assert vocabulary.digest == hashlib.sha256(b'a\nb\nc').hexdigest()


def test_digests_are_tffs():
  assert _WORDS.archive_sha256.startswith('1dc00256d6e527c5')
  assert _TAGS.archive_sha256.startswith('6fe281cec490d938')
  assert _WORDS.origin.endswith('/stackoverflow.word_count.tar.bz2')
