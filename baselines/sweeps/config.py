"""Settings of the sweep command itself."""

import dataclasses
import pathlib
from typing import Optional

from baselines import settings
from baselines.settings import setting
from baselines.sweeps import shards

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
    settings.check_settings(self)
    if self.shard is not None:
      shards.parse_shard(self.shard)
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
