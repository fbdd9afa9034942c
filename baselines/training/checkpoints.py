"""Checkpoints: the whole server state after a round, as NumPy arrays.

A checkpoint is one `.npz` file with the leaves of the state (rates, optimizer
moments and counters are among them), written under another name, flushed to
the disk and renamed, so that a file with the right name is whole unless the
disk damaged it; a digest inside tells that.
"""

import hashlib
import io
import os
import pathlib
import re
from typing import Callable, Optional, Sequence

import numpy as np

from baselines import files

_KEPT = 2
_NAME = re.compile(r'round_(\d{8})\.npz')


def save(
    folder: pathlib.Path, round_num: int, leaves: Sequence[np.ndarray]
) -> None:
  """Saves the leaves of a round's state; keeps it and the one before."""
  arrays = {f'leaf_{i:04d}': np.asarray(leaf) for i, leaf in enumerate(leaves)}
  digest = np.frombuffer(_digest(round_num, list(arrays.values())), np.uint8)
  buffer = io.BytesIO()
  np.savez(buffer, digest=digest, **arrays)
  files.write_whole(_path(folder, round_num), buffer.getvalue())
  saved = saved_rounds(folder)
  # Later ones were passed over when the run went on: damaged, or too new.
  kept = [r for r in saved if r <= round_num][-_KEPT:]
  for other in set(saved) - set(kept):
    _path(folder, other).unlink()


def saved_rounds(folder: pathlib.Path) -> list[int]:
  """Returns the rounds that `folder` has checkpoints of, in rising order."""
  if not folder.is_dir():
    return []
  matches = (_NAME.fullmatch(name) for name in os.listdir(folder))
  return sorted(int(match.group(1)) for match in matches if match)


def load(folder: pathlib.Path, round_num: int) -> list[np.ndarray]:
  """Loads the leaves that `save` was given for a round.

  Raises:
    ValueError: If the file is damaged.
    FileNotFoundError: If there is no such file.
  """
  path = _path(folder, round_num)
  try:
    with np.load(path, allow_pickle=False) as archive:
      stored = bytes(archive['digest'])
      names = sorted(set(archive.files) - {'digest'})
      leaves = [archive[name] for name in names]
  except FileNotFoundError:
    raise
  except files.DAMAGED_ARCHIVE as error:
    raise ValueError(f'Checkpoint {path} is damaged: {error}') from error
  if stored != _digest(round_num, leaves):
    raise ValueError(f'Checkpoint {path} is damaged: its digest differs.')
  return leaves


def load_newest(
    folder: pathlib.Path, max_round: int, report: Callable[[str], None]
) -> Optional[tuple[int, list[np.ndarray]]]:
  """Loads the newest readable state, of round `max_round` at most, if any.

  Calls `report` with a sentence for each checkpoint passed over.
  """
  for round_num in reversed(saved_rounds(folder)):
    if round_num > max_round:
      report(
          f'passing over the checkpoint of round {round_num}: metrics.csv is '
          f'whole only up to round {max_round}'
      )
      continue
    try:
      return round_num, load(folder, round_num)
    except ValueError as error:
      report(f'passing over a checkpoint: {error}')
  return None


def _path(folder: pathlib.Path, round_num: int) -> pathlib.Path:
  return folder / f'round_{round_num:08d}.npz'


def _digest(round_num: int, leaves: Sequence[np.ndarray]) -> bytes:
  digest = hashlib.sha256(str(round_num).encode())
  for leaf in leaves:
    digest.update(f'{leaf.dtype.str}{leaf.shape}'.encode())
    digest.update(np.ascontiguousarray(leaf).tobytes())
  return digest.digest()
