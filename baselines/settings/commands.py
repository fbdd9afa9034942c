"""Settings of the commands themselves: where results go, which part runs."""

import dataclasses
import pathlib
from typing import Optional, Sequence, TypeVar

from baselines.settings import schema
from baselines.settings.schema import setting


@dataclasses.dataclass(frozen=True)
class OutputConfig:
  """Where results go. The experiment does not depend on it."""

  output_dir: Optional[str] = setting(
      None, 'Folder of the run; by default one under runs/, named by a digest '
      'of all settings.'
  )
  tensorboard: bool = setting(True, 'Also write TensorBoard events.')
  dry_run: bool = setting(
      False, 'Print the full configuration and stop.'
  )

  def __post_init__(self) -> None:
    schema.check_settings(self)


_Point = TypeVar('_Point')


def parse_shard(text: str) -> tuple[int, int]:
  """Returns (i, n) of `i/n`, 1 <= i <= n; ValueError for another form."""
  first, _, second = text.partition('/')
  if not (first.isdecimal() and second.isdecimal()):
    raise ValueError(f'shard must be i/n, such as 2/8, found {text!r}.')
  index, count = int(first), int(second)
  if not 1 <= index <= count:
    raise ValueError(f'shard must be i/n with 1 <= i <= n, found {text!r}.')
  return index, count


def shard_of(
    points: Sequence[_Point], text: Optional[str]
) -> list[_Point]:
  """Returns the points of a shard `i/n`, a part for one of several machines.

  All points without one. Neighbours in a sweep share a program, so a shard is a
  run of neighbours; sizes differ by one at most. Raises ValueError if the text
  has another form.
  """
  if text is None:
    return list(points)
  index, count = parse_shard(text)
  first, last = (
      k * len(points) // count for k in (index - 1, index)
  )
  return list(points[first:last])


FIGURE_ENDINGS = ('.png', '.pdf', '.svg')


@dataclasses.dataclass(frozen=True)
class SweepOutputConfig:
  """Where the results of a sweep go."""

  output_dir: str = setting(
      'runs/sweep',
      'Folder for the run folders, results.csv and results.md.',
  )
  figure: Optional[str] = setting(
      None, 'File for a figure of population loss against rounds.'
  )
  shard: Optional[str] = setting(
      None,
      'Run only part i of n, given as i/n. The same command without it, once '
      'all parts are done, gives the table of all.',
  )
  tensorboard: bool = setting(True, 'Also write TensorBoard events.')
  dry_run: bool = setting(False, 'Print the runs and their stages and stop.')

  def __post_init__(self) -> None:
    schema.check_settings(self)
    if self.shard is not None:
      parse_shard(self.shard)
      if self.figure:
        raise ValueError(
            'figure would be ignored: shard runs a part, and the figure is of '
            f'all; found {self.figure!r}.'
        )
    if self.figure and pathlib.Path(self.figure).suffix not in FIGURE_ENDINGS:
      raise ValueError(
          f'figure must end in one of {", ".join(FIGURE_ENDINGS)}; found '
          f'{self.figure!r}.'
      )
