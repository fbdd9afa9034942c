"""The figures by name: what `localupdate-figures` can draw.

Holds import paths, so that `--help` and wrong arguments are answered without
Matplotlib and pandas, which take seconds to load.
"""

from collections.abc import Mapping
import dataclasses
import importlib
import types


@dataclasses.dataclass(frozen=True)
class FigureEntry:
  """What is known of a kind of figure before anything heavy is imported.

  Attributes:
    help: What is drawn, for the list of figures.
    command: Import path of the module that draws it. The module loads neither
      Matplotlib nor pandas when it is imported and has two functions:
      `add_options(parser)` adds the figure's options to an
      `argparse.ArgumentParser`; `draw_from(options)` draws what they ask for
      and returns the paths of the files written. It raises ValueError or
      OSError where it cannot.
  """

  help: str
  command: str


FIGURES: Mapping[str, FigureEntry] = {
    'loss': FigureEntry(
        help='a quantity against rounds, one line per rate',
        command='baselines.figures.loss_command',
    ),
    'figure1': FigureEntry(
        help='how gamma and K move the limit of LocalUpdate (paper 1, Fig. 1)',
        command='baselines.figures.figure1_command',
    ),
    'theory': FigureEntry(
        help='which gamma, eta and K the bounds recommend for your numbers',
        command='baselines.figures.theory_command',
    ),
}


def import_command(name: str) -> types.ModuleType:
  """Returns the module that draws the figure called `name`."""
  return importlib.import_module(FIGURES[name].command)
