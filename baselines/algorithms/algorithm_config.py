"""What the settings of every algorithm tell of it."""

import dataclasses
from typing import ClassVar, Optional, TypeVar

from baselines import settings

_Config = TypeVar('_Config', bound='AlgorithmConfig')


@dataclasses.dataclass(frozen=True)
class AlgorithmConfig:
  """Settings of an algorithm; no setting is common to all.

  Attributes:
    RATES: The settings that are numbers in the state of the process, so that
      another value needs no other program.
    OBSERVED: The settings that say what is observed of a run, and so are no
      part of its program either.
  """

  RATES: ClassVar[tuple[str, ...]] = ()
  OBSERVED: ClassVar[tuple[str, ...]] = ()

  def __post_init__(self) -> None:
    settings.check_settings(self)

  @property
  def extra_columns(self) -> tuple[str, ...]:
    """The columns of metrics.csv besides those of all algorithms."""
    return ()

  @property
  def num_rounds(self) -> Optional[int]:
    """How many rounds it takes; None if its settings do not tell."""
    return None

  @property
  def needs_all_examples(self) -> bool:
    """Whether a round also reads all examples of its clients."""
    return False

  @property
  def counts_regret(self) -> bool:
    """Whether the regret of all queries is counted."""
    return False

  @property
  def has_data_in_program(self) -> bool:
    """Whether data are part of the program, or decide the shapes in it."""
    return False

  def compiled_settings(self: _Config) -> _Config:
    """Returns these settings as far as the program depends on them."""
    return dataclasses.replace(
        self, **dict.fromkeys(self.RATES, 1.0), **dict.fromkeys(self.OBSERVED)
    )
