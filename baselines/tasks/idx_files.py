"""Folders of idx files, MNIST's format: checks before TensorFlow, and reading.

A file is gzipped: two bytes 0, the type (8 for unsigned bytes), the number of
dimensions, each dimension as a big-endian int32, then the bytes.
"""

import gzip
import math
import os
import struct
from typing import Optional
import zlib

import numpy as np

# Files of (images, labels) by split, as MNIST names them.
FILES = {
    'train': ('train-images-idx3-ubyte.gz', 'train-labels-idx1-ubyte.gz'),
    'test': ('t10k-images-idx3-ubyte.gz', 't10k-labels-idx1-ubyte.gz'),
}
_UNREADABLE = (OSError, EOFError, zlib.error, struct.error)
_ADVICE = 'put a whole copy of the file there.'


def check_folder(data_dir: Optional[str]) -> None:
  """Checks, in milliseconds, that the four files are there and whole.

  Compares the size that each header states with the one that the file's last
  bytes state, and the numbers of images and labels; reads no image.

  Raises:
    FileNotFoundError: If the folder or a file is not there.
    ValueError: If no folder is given, or a file is cut or of another format.
  """
  names = ', '.join(name for split in FILES.values() for name in split)
  if not data_dir:
    raise ValueError(
        f"data_dir must name the folder that holds {names} when data_source="
        f"'idx', got {data_dir!r}."
    )
  if not os.path.isdir(data_dir):
    raise FileNotFoundError(
        f'data_dir {data_dir!r} is not a folder; give the one that holds '
        f'{names}.'
    )
  for images, labels in FILES.values():
    paths = [os.path.join(data_dir, name) for name in (images, labels)]
    (num_images, *_), (num_labels,) = (
        _check_file(path, rank) for path, rank in zip(paths, (3, 1))
    )
    if num_images != num_labels:
      raise ValueError(
          f'{paths[1]} has {num_labels} labels for the {num_images} images of '
          f'{images}; {_ADVICE}'
      )


def read_split(data_dir: str, split: str) -> tuple[np.ndarray, np.ndarray]:
  """Reads the split `train` or `test`.

  Returns:
    The images, uint8 [N, rows, columns], and the labels, uint8 [N].

  Raises:
    ValueError: If a file is damaged.
  """
  images, labels = (
      _read(os.path.join(data_dir, name)) for name in FILES[split]
  )
  return images, labels


def _check_file(path: str, rank: int) -> tuple[int, ...]:
  """Returns the dimensions in the header, checked against the size."""
  if not os.path.isfile(path):
    raise FileNotFoundError(f'{path} does not exist; {_ADVICE}')
  try:
    with gzip.open(path) as file:
      shape = _parse_header(file.read(4 + 4 * rank))
    with open(path, 'rb') as file:
      file.seek(-4, os.SEEK_END)
      found, = struct.unpack('<I', file.read(4))
  except _UNREADABLE as e:
    raise ValueError(f'{path} cannot be read ({e}); {_ADVICE}') from e
  if shape is None or len(shape) != rank:
    raise ValueError(
        f'{path} is not an idx file of bytes with {rank} dimensions; {_ADVICE}'
    )
  expected = 4 + 4 * rank + math.prod(shape)
  if found != expected % 2**32:
    raise ValueError(
        f'{path} is cut or damaged: expected {expected} unpacked bytes by its '
        f'header, found {found} by its end; {_ADVICE}'
    )
  return shape


def _parse_header(header: bytes) -> Optional[tuple[int, ...]]:
  """Returns the dimensions; None if it is no header of that length."""
  rank = (len(header) - 4) // 4
  if header[:4] != bytes([0, 0, 8, rank & 255]):
    return None
  return struct.unpack(f'>{rank}I', header[4:])


def _read(path: str) -> np.ndarray:
  try:
    with gzip.open(path) as file:
      data = file.read()
  except _UNREADABLE as e:
    raise ValueError(f'{path} cannot be read ({e}); {_ADVICE}') from e
  offset = 4 + 4 * data[3]
  shape = _parse_header(data[:offset])
  return np.frombuffer(data, np.uint8, offset=offset).reshape(shape)
