"""Settings of the training command itself."""

import dataclasses
from typing import Optional

from baselines import settings
from baselines.settings import setting


@dataclasses.dataclass(frozen=True)
class OutputConfig:
  """Where results go; no part of the experiment."""

  output_dir: Optional[str] = setting(
      None, 'Folder of the run; by default one under runs/, named by a digest '
      'of all settings.'
  )
  tensorboard: bool = setting(True, 'Also write TensorBoard events.')
  dry_run: bool = setting(
      False, 'Print the full configuration and stop.'
  )

  def __post_init__(self) -> None:
    settings.check_settings(self)
