"""idx files: what is read is what was written, and cut files are found."""

import gzip
import os
import shutil
import struct

import numpy as np
import pytest

from baselines.tasks import idx_files


def write_file(path, array):
  header = bytes([0, 0, 8, array.ndim]) + struct.pack(
      f'>{array.ndim}I', *array.shape
  )
  path.write_bytes(gzip.compress(header + array.tobytes(), 1))


@pytest.fixture(name='folder')
def _folder(tmp_path):
  rng = np.random.default_rng(0)
  for images, labels in idx_files.FILES.values():
    write_file(
        tmp_path / images, rng.integers(0, 256, [20, 5, 4]).astype(np.uint8)
    )
    write_file(tmp_path / labels, np.arange(20, dtype=np.uint8))
  return tmp_path


def test_what_is_read_is_what_was_written(folder):
  idx_files.check_folder(str(folder))
  rng = np.random.default_rng(0)
  for split in ('train', 'test'):
    images, labels = idx_files.read_split(str(folder), split)
    np.testing.assert_array_equal(images, rng.integers(0, 256, [20, 5, 4]))
    np.testing.assert_array_equal(labels, np.arange(20))
    assert images.dtype == labels.dtype == np.uint8


@pytest.mark.parametrize('data_dir', [None, ''])
def test_folder_is_needed(data_dir):
  with pytest.raises(ValueError, match="data_dir must name .*'idx', got"):
    idx_files.check_folder(data_dir)


def test_missing_folder_and_file(folder):
  with pytest.raises(FileNotFoundError, match='nowhere.* is not a folder'):
    idx_files.check_folder(str(folder / 'nowhere'))
  (folder / 't10k-labels-idx1-ubyte.gz').unlink()
  with pytest.raises(FileNotFoundError, match='t10k-labels.* does not exist'):
    idx_files.check_folder(str(folder))


@pytest.mark.parametrize('size', [0, 3, 30, -60, -1])
def test_cut_file(folder, size):
  path = folder / 'train-images-idx3-ubyte.gz'
  os.truncate(path, size % path.stat().st_size)
  with pytest.raises(ValueError, match='train-images.* put a whole copy') as e:
    idx_files.check_folder(str(folder))
  assert '\n' not in str(e.value)


def test_other_formats(folder):
  path = folder / 'train-labels-idx1-ubyte.gz'
  path.write_bytes(b'no gzip at all')
  with pytest.raises(ValueError, match='train-labels.* cannot be read'):
    idx_files.check_folder(str(folder))
  write_file(path, np.zeros([20, 1], np.uint8))
  with pytest.raises(ValueError, match='not an idx file of bytes with 1 dim'):
    idx_files.check_folder(str(folder))
  write_file(path, np.zeros([19], np.uint8))
  with pytest.raises(ValueError, match='19 labels for the 20 images of train'):
    idx_files.check_folder(str(folder))


def test_damage_inside_is_found_on_reading(folder):
  path = folder / 'test-copy'
  name = idx_files.FILES['test'][0]
  path.mkdir()
  for file in folder.glob('*.gz'):
    shutil.copyfile(file, path / file.name)
  data = bytearray((path / name).read_bytes())
  data[100] ^= 0xFF
  (path / name).write_bytes(data)
  idx_files.check_folder(str(path))
  with pytest.raises(ValueError, match='t10k-images.* cannot be read'):
    idx_files.read_split(str(path), 'test')


def test_half_of_the_real_file(shared_data, tmp_path):
  folder = shared_data / 'mnist'
  if not folder.is_dir():
    pytest.skip('needs ../shared/data/mnist')
  idx_files.check_folder(str(folder))
  for file in folder.glob('*.gz'):
    shutil.copyfile(file, tmp_path / file.name)
  path = tmp_path / 'train-images-idx3-ubyte.gz'
  path.chmod(0o644)
  os.truncate(path, path.stat().st_size // 2)
  with pytest.raises(ValueError, match='expected 47040016 unpacked bytes'):
    idx_files.check_folder(str(tmp_path))
