"""`localupdate-figures regret_against_bits`: as `regret`, against bits."""

import argparse
from typing import Any

from baselines.figures import regret_command


def add_options(parser: argparse.ArgumentParser) -> None:
  """Adds the options of this figure."""
  regret_command.add_options(parser)


def draw_from(options: argparse.Namespace) -> Any:
  """Draws the figure; returns the numbers behind it.

  Raises:
    ValueError: If the runs cannot be read, count no regret, or are of several
      tasks.
  """
  return regret_command.draw_against(options, 'bits')
