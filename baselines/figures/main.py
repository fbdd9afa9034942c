"""localupdate-figures: draws figures from run folders and from theory.

A figure is one function: from the table of runs that `results.load_runs` makes
(unless it is of theory) and the options to a `tables.Drawn`. `FIGURES` names it
by an import path, with the options that it takes, so that help and wrong
arguments are answered without Matplotlib and pandas, which take seconds.
"""

import argparse
import importlib
import pathlib
import sys
from typing import Any, NamedTuple, NoReturn

from baselines import command
from baselines import files
from baselines.figures import options as options_lib

_NAME = 'localupdate-figures'
_PACKAGE = 'baselines.figures'
_RULE = ('selected_by', 'last_rounds')
_REGRET = ('runs', 'figure', 'csv', 'log_scale')
_TABLE = ('runs', 'table', 'csv')


class Figure(NamedTuple):
  """A kind of figure or table.

  Its function is named with its module in this package; its options are keys of
  `options.OPTIONS`, in the order of its help.
  """

  help: str
  function: str
  options: tuple[str, ...]


FIGURES = {
    'loss': Figure(
        'a quantity against rounds, one line per rate', 'rates:loss',
        ('runs', 'figure', 'quantity', 'log_scale'),
    ),
    'figure1': Figure(
        'how gamma and K move the limit of LocalUpdate (paper 1, Fig. 1)',
        'figure1:figure1',
        (
            'figure', 'csv', 'rounds', 'seed', 'figure1_eta', 'x_1',
            'figure1_gammas', 'figure1_steps', 'num_steps_list',
            'figure1_gamma',
        ),
    ),
    'curves': Figure(
        'a quantity against rounds by gamma (paper 1, Fig. 2, 4 to 9)',
        'rates:curves',
        (
            'runs', 'figure', 'csv', 'select', 'eta', 'gammas', 'decay', *_RULE,
            'quantity', 'smoothing', 'log_scale', 'largest',
        ),
    ),
    'update_norms': Figure(
        'the norm of the update by gamma (paper 1, Fig. 3)',
        'rates:update_norms',
        ('runs', 'figure', 'csv', 'eta', 'decay', 'block', 'log_scale'),
    ),
    'table1': Figure(
        'clients and examples of each data set (paper 1, Table 1)',
        'table1:table1', (*_TABLE, 'data_dir'),
    ),
    'rates_table': Figure(
        'the best eta of each gamma and task (paper 1, Appendix D)',
        'best_rates:best_rates', (*_TABLE, *_RULE),
    ),
    'rate_flags': Figure(
        'the best eta of each gamma as flags for localupdate-sweep',
        'best_rates:rate_flags',
        ('runs', 'flag_file', 'start', 'at_most', *_RULE),
    ),
    'theory': Figure(
        'which gamma, eta and K the bounds recommend for your numbers',
        'trade_off:advice',
        (
            'mu', 'smoothness', 'sigma_a', 'sigma_c', 'noise_variance',
            'num_steps', 'horizon', 'distance', 'gamma', 'noise_growth',
            'figure', 'csv',
        ),
    ),
    'regret': Figure(
        'cumulative regret against time (paper 2, Fig. 1)',
        'regret:against_time', _REGRET,
    ),
    'regret_against_bits': Figure(
        'cumulative regret against the bits that a client sent',
        'regret:against_bits', _REGRET,
    ),
    'bits_table': Figure(
        'regret, bits and their ratios, a row per algorithm (Table I)',
        'bits:bits', _TABLE,
    ),
    'codes_table': Figure(
        'bits under each code, a row per algorithm', 'bits:codes', _TABLE
    ),
    'epochs': Figure(
        'lengths and regrets of the epochs of CEAL', 'regret:epochs',
        ('runs', 'figure', 'csv'),
    ),
    'growth': Figure(
        'regret and bits against the horizon T', 'regret:growth',
        ('runs', 'figure', 'csv', 'log_regret'),
    ),
    'sensitivity_table': Figure(
        'regret and bits of CEAL, a row per changed setting',
        'bits:sensitivity', _TABLE,
    ),
}


class _Parser(argparse.ArgumentParser):
  """Reports an error as one line; takes no shortened options."""

  def __init__(self, **arguments):
    super().__init__(allow_abbrev=False, **arguments)

  def error(self, message: str) -> NoReturn:
    self.exit(command.BAD_INPUT, f'{_NAME}: error: {message}\n')


def main(arguments: list[str]) -> int:
  """Runs the command; returns its exit code."""
  options = _parser().parse_args(arguments)
  try:
    options_lib.check_outputs(options)
    options_lib.refuse_ignored(options)
    written = _draw(options)
  except (ValueError, OSError) as error:
    print(f'{_NAME}: error: {command.one_line(error)}', file=sys.stderr)
    return command.BAD_INPUT
  for path in written:
    print(path)
  return command.FINISHED


def _draw(options: argparse.Namespace) -> list[pathlib.Path]:
  """Draws what the options ask for; returns the files written."""
  from baselines.figures import style
  from baselines.figures import tables
  from baselines.results import runs

  module, _, function = FIGURES[options.figure].function.partition(':')
  draw = getattr(importlib.import_module(f'{_PACKAGE}.{module}'), function)
  read = [runs.load_runs(options.runs)] if 'runs' in options else []
  with style.context():
    drawn: Any = draw(*read, options)
    print(drawn.printed, end='')
    if drawn.figure is not None:
      style.save(drawn.figure, options.output)
  if drawn.texts is not None:
    print(tables.table_text(drawn.texts))
    text = tables.markdown(drawn.texts, drawn.notes)
    files.write_whole(options.output, text)
  if drawn.content is not None:
    files.write_whole(options.output, drawn.content)
  if not drawn.has_lines:
    # Not on standard output, which has tables and names of files only.
    print(
        f'{_NAME}: {options.output} has no lines: each setting has a run that '
        'has diverged, or no values; the caption counts the runs.',
        file=sys.stderr,
    )
  if getattr(options, 'csv', None) is None:
    return [options.output]
  tables.save(drawn.numbers, options.csv)
  return [options.output, options.csv]


def _parser() -> argparse.ArgumentParser:
  parser = _Parser(
      prog=_NAME,
      description='Draws figures from finished run folders, and from theory.',
  )
  kinds = parser.add_subparsers(dest='figure', required=True, metavar='FIGURE')
  for name, figure in FIGURES.items():
    kind = kinds.add_parser(name, help=figure.help, description=figure.help)
    options_lib.add_options(kind, *figure.options)
  return parser


def run() -> None:
  """The console script."""
  with command.patient():
    code = main(sys.argv[1:])
  sys.exit(code)


if __name__ == '__main__':
  run()
