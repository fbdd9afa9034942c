"""Files that are either whole or not there."""

import os
import pathlib
from typing import Union
import zipfile

# What a killed process may leave behind; it has no meaning.
PARTIAL_SUFFIX = '.partial'
# What NumPy raises for an `.npz` file that is damaged.
DAMAGED_ARCHIVE = (
    zipfile.BadZipFile,
    ValueError,
    KeyError,
    EOFError,
    OSError,
    RuntimeError,  # Also NotImplementedError: flags of the archive are off.
)


def write_whole(path: pathlib.Path, content: Union[bytes, str]) -> None:
  """Writes a file under another name, flushes it to the disk, renames it.

  Whoever opens `path`, now or after a crash, finds the old content or the new
  one, never a part. Folders that are missing are made.
  """
  path.parent.mkdir(parents=True, exist_ok=True)
  if isinstance(content, str):
    content = content.encode()
  partial = path.with_name(path.name + PARTIAL_SUFFIX)
  with open(partial, 'wb') as stream:
    stream.write(content)
    stream.flush()
    os.fsync(stream.fileno())
  os.replace(partial, path)
  _flush_folder(path.parent)


def _flush_folder(folder: pathlib.Path) -> None:
  descriptor = os.open(folder, os.O_RDONLY)
  try:
    os.fsync(descriptor)
  finally:
    os.close(descriptor)
