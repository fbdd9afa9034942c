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
      into `options.output`, and returns the table of numbers behind it, or
      None. It raises ValueError or OSError where it cannot.
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
    'curves': FigureEntry(
        help='a quantity against rounds by gamma (paper 1, Fig. 2, 4 to 9)',
        command='baselines.figures.curves_command',
    ),
    'update_norms': FigureEntry(
        help='the norm of the update by gamma (paper 1, Fig. 3)',
        command='baselines.figures.update_norms_command',
    ),
    'table1': FigureEntry(
        help='clients and examples of each data set (paper 1, Table 1)',
        command='baselines.figures.table1_command',
    ),
    'rates_table': FigureEntry(
        help='the best eta of each gamma and task (paper 1, Appendix D)',
        command='baselines.figures.rates_table_command',
    ),
    'rate_flags': FigureEntry(
        help='the best eta of each gamma as flags for localupdate-sweep',
        command='baselines.figures.rate_flags_command',
    ),
    'theory': FigureEntry(
        help='which gamma, eta and K the bounds recommend for your numbers',
        command='baselines.figures.theory_command',
    ),
    'regret': FigureEntry(
        help='cumulative regret against time (paper 2, Fig. 1)',
        command='baselines.figures.regret_command',
    ),
    'regret_against_bits': FigureEntry(
        help='cumulative regret against the bits that a client sent',
        command='baselines.figures.regret_against_bits_command',
    ),
    'bits_table': FigureEntry(
        help='regret, bits and their ratios, a row per algorithm (Table I)',
        command='baselines.figures.bits_table_command',
    ),
    'codes_table': FigureEntry(
        help='bits under each code, a row per algorithm',
        command='baselines.figures.codes_table_command',
    ),
    'epochs': FigureEntry(
        help='lengths and regrets of the epochs of CEAL',
        command='baselines.figures.epochs_command',
    ),
    'growth': FigureEntry(
        help='regret and bits against the horizon T',
        command='baselines.figures.growth_command',
    ),
    'sensitivity_table': FigureEntry(
        help='regret and bits of CEAL, a row per changed setting',
        command='baselines.figures.sensitivity_table_command',
    ),
}


def import_command(name: str) -> types.ModuleType:
  """Returns the module that draws the figure called `name`."""
  return importlib.import_module(FIGURES[name].command)
