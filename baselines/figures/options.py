"""The options of all figures and tables, each declared once.

`OPTIONS` has them by a key; `main.FIGURES` lists the keys that a figure takes.
Two options of one name have two keys where figures read it differently. Loads
neither Matplotlib nor pandas, so that help and wrong arguments are answered at
once.
"""

import argparse
from collections.abc import Mapping
import fractions
import math
import os
import pathlib
import re
from typing import Any, Callable, NamedTuple, Optional, TypeVar

_Value = TypeVar('_Value')

_LOSSES = ('loss_before_training', 'population_loss', 'example_weighted_loss')
_QUANTITIES = (
    'population_loss', 'example_weighted_loss', 'loss_before_training',
    'update_norm', 'test_loss', 'test_accuracy',
)
_LAST_ROUNDS = 100
_MAX_ROUNDS = 10**9
# Of Figure 1: exact moments of Q(z)^2 take K^2 products of long fractions.
_MAX_EXACT_STEPS = 100
_MAX_SIMULATED_ROUNDS = 1_000_000
# Of the theory: the bounds sum over up to ten times as many steps.
_MAX_STEPS = 10_000
# Between these, squares and quotients of what the theory asks for are finite.
_LARGEST = 1e20
_SMALLEST = 1e-20
# Short decimals and quotients: an exact 1e-400000000 would fill the memory.
_RATIONAL = re.compile(r'\d{1,18}(\.\d{0,18})?(e[+-]?\d\d?)?|\d{1,18}/\d{1,18}')


# ---- Values: each function is a `type` for argparse. It refuses what is wrong
# with the rule and the text found; argparse puts the option's name in front.


def positive(text: str) -> float:
  """Reads a number from 1e-20 to 1e20."""
  value = _number(text)
  if not _SMALLEST <= value <= _LARGEST:
    raise _refusal('a number above 0, from 1e-20 to 1e20', text)
  return value


def not_negative(text: str) -> float:
  """Reads a number from 0 to 1e20."""
  value = _number(text)
  if not 0.0 <= value <= _LARGEST:
    raise _refusal('a number from 0 to 1e20', text)
  return value


def finite(text: str) -> float:
  """Reads a number from -1e20 to 1e20."""
  value = _number(text)
  if not abs(value) <= _LARGEST:
    raise _refusal('a number from -1e20 to 1e20', text)
  return value


def whole(minimum: int, maximum: int) -> Callable[[str], int]:
  """Returns a function that reads a whole number in this range."""

  def whole_number(text: str) -> int:
    try:
      value = int(text)
    except ValueError:
      value = None
    if value is None or not minimum <= value <= maximum:
      raise _refusal(f'a whole number from {minimum} to {maximum}', text)
    return value

  return whole_number


def rational(text: str) -> fractions.Fraction:
  """Reads a number that is not negative exactly: `0.25`, `1/4`, `1e-3`."""
  found = text.strip().lower()
  if not _RATIONAL.fullmatch(found) or found.endswith('/0'):
    raise _refusal('a decimal number or a quotient, not negative', text)
  try:
    return fractions.Fraction(found)
  except (ValueError, ZeroDivisionError) as error:
    raise _refusal('a decimal number or a quotient', text) from error


def list_of(
    read: Callable[[str], _Value],
) -> Callable[[str], tuple[_Value, ...]]:
  """Returns a function that reads values separated by commas, all different."""

  def values(text: str) -> tuple[_Value, ...]:
    found = tuple(read(part) for part in text.split(','))
    if len(set(found)) < len(found):
      raise _refusal('a list without repetitions', text)
    return found

  return values


def path_with(*endings: str) -> Callable[[str], pathlib.Path]:
  """Returns a function that reads a path with one of these endings."""

  def path(text: str) -> pathlib.Path:
    if pathlib.Path(text).suffix.lower() not in endings:
      raise argparse.ArgumentTypeError(
          f'must end in {"one of " if endings[1:] else ""}'
          f'{", ".join(endings)}, found {text!r}'
      )
    try:
      return pathlib.Path(text).expanduser()
    except RuntimeError as error:  # No such user.
      raise argparse.ArgumentTypeError(f'{error} Found {text!r}') from error

  return path


def _number(text: str) -> float:
  try:
    return float(text)
  except ValueError:
    return math.nan


def _refusal(rule: str, text: str) -> argparse.ArgumentTypeError:
  return argparse.ArgumentTypeError(f'must be {rule}, found {text!r}')


# ---- The options.


class Option(NamedTuple):
  """An option: its help, and arguments of `ArgumentParser.add_argument`.

  The flag is its name where that is not its key.
  """

  help: str
  arguments: Mapping[str, Any]
  flag: Optional[str] = None


def _option(text: str, *, flag: Optional[str] = None, **arguments) -> Option:
  return Option(text, arguments, flag)


def _shown(text: str, read: Callable[[str], Any], default: Any, **more):
  """An option whose help shows its default; one that is a text is read."""
  return _option(
      f'{text} (default: %(default)s)', type=read, default=default, **more
  )


def _needed(text: str, read: Callable[[str], Any]) -> Option:
  return _option(text, type=read, required=True)


OPTIONS: Mapping[str, Option] = {
    'runs': _option(
        'a run folder, or a folder of run folders such as a sweep; may be '
        'given more than once',
        type=pathlib.Path, action='append', required=True,
    ),
    # Files.
    'figure': _option(
        'the file to write; its ending says the format: png, pdf, svg',
        flag='output', type=path_with('.png', '.pdf', '.svg'), required=True,
    ),
    'table': _option(
        'the file to write, in Markdown, ending in .md',
        flag='output', type=path_with('.md'), required=True,
    ),
    'flag_file': _option(
        'the file to write, for --flagfile, ending in .flags',
        flag='output', type=path_with('.flags'), required=True,
    ),
    'csv': _option(
        'a file for the numbers of the figure or table, ending in .csv',
        type=path_with('.csv'),
    ),
    # Which runs.
    'select': _shown(
        'all runs; those with eta equal to gamma; or the best eta of each '
        'gamma', None, 'all', choices=('all', 'equal', 'best'),
    ),
    'eta': _option(
        'use the runs with this eta only',
        flag='server_learning_rate', type=not_negative,
    ),
    'gammas': _option(
        'use the runs with these gammas only', flag='client_learning_rates',
        type=list_of(not_negative), metavar='GAMMA,...',
    ),
    'decay': _option(
        'also use the runs of LocalUpdateDecay, beside the others',
        action='store_true',
    ),
    'start': _option(
        'only the largest gamma with a run that has finished, which '
        'LocalUpdateDecay is to start from', action='store_true',
    ),
    'at_most': _option(
        'with start: the largest gamma that may be taken', type=not_negative
    ),
    # How the best eta is found: see `results.ranking`.
    'selected_by': _option(
        'the loss by which the best eta is found (default: '
        f'{_LOSSES[0]})', choices=_LOSSES,
    ),
    'last_rounds': _option(
        'the rounds at the end that it is averaged over, at most a tenth of '
        f'a run (default: {_LAST_ROUNDS})', type=whole(1, _MAX_ROUNDS),
    ),
    # What is drawn.
    'quantity': _shown(
        'the column to draw', None, _QUANTITIES[0], choices=_QUANTITIES
    ),
    'smoothing': _shown(
        'draw means of this many consecutive values',
        whole(1, _MAX_ROUNDS), 1,
    ),
    'block': _option(
        'the rounds of a block (default: %(default)s, as in the paper)',
        type=whole(1, _MAX_ROUNDS), default=1000,
    ),
    'log_scale': _option('logarithmic vertical axis', action='store_true'),
    'log_regret': _option(
        'logarithmic axis of the regret', flag='log_scale', action='store_true'
    ),
    'largest': _option(
        'where the vertical axis ends, at most', type=positive
    ),
    # Of table1.
    'data_dir': _option(
        "the folder that holds TFF's databases, whose clients and examples "
        "are counted (default: each run's own data_dir, in the working "
        'directory if it is relative)',
    ),
    # Of figure1, whose eta, rates, steps, rounds and start in the paper are
    # lost: a choice of ours with gamma = 0 and one gamma > 1, K = 1 and a large
    # even K.
    'rounds': _shown(
        'T; the second half of them is averaged',
        whole(2, _MAX_SIMULATED_ROUNDS), '4000',
    ),
    'seed': _shown('of the clients drawn', whole(0, 2**32 - 1), '1'),
    'figure1_eta': _shown(
        'eta, in both panels', rational, '0.02', flag='server_learning_rate'
    ),
    'x_1': _shown('x_1', finite, '0', flag='start'),
    'figure1_gammas': _shown(
        'gammas of the left panel', list_of(rational), '0,1/4,1/2,1,1.1',
        flag='client_learning_rates',
    ),
    'figure1_steps': _shown(
        'K of the left panel', whole(1, _MAX_EXACT_STEPS), '10',
        flag='num_steps',
    ),
    'num_steps_list': _shown(
        'Ks of the right panel', list_of(whole(1, _MAX_EXACT_STEPS)),
        '1,2,5,10,40',
    ),
    'figure1_gamma': _shown(
        'gamma of the right panel', rational, '1/4',
        flag='client_learning_rate',
    ),
    # Of theory.
    'mu': _needed('the least eigenvalue of a Hessian', positive),
    'smoothness': _needed('L, the largest one', positive),
    'sigma_a': _needed('how much the Hessians differ', not_negative),
    'sigma_c': _needed('how much the minimizers differ', not_negative),
    'noise_variance': _needed('V, of the mean update q', not_negative),
    'num_steps': _needed('K, local steps', whole(1, _MAX_STEPS)),
    'horizon': _needed('T, rounds', whole(1, _MAX_ROUNDS)),
    'distance': _needed('||x_1 - x*||, at the start', positive),
    'gamma': _option(
        'a gamma, below 1/L, to be listed beside those recommended',
        flag='client_learning_rate', type=not_negative,
    ),
    'noise_growth': _shown(
        'how V grows with K: linear as in the paper, or square, as the part '
        'of it that comes from clients that differ',
        None, 'linear', choices=('linear', 'square'),
    ),
}


def add_options(parser: argparse.ArgumentParser, *keys: str) -> None:
  """Adds the options of these keys."""
  for key in keys:
    text, arguments, flag = OPTIONS[key]
    parser.add_argument(f'--{flag or key}', help=text, **arguments)


def refuse_ignored(options: argparse.Namespace) -> None:
  """Raises ValueError if an option was given that has no use beside others."""
  select = getattr(options, 'select', 'best')
  for name in ('selected_by', 'last_rounds'):
    value = getattr(options, name, None)
    if value is not None and select != 'best':
      raise ValueError(
          f"{name} would be ignored: select is '{select}', found {value!r}."
      )
  at_most = getattr(options, 'at_most', None)
  if at_most is not None and not options.start:
    raise ValueError(
        f'at_most would be ignored without start, found {at_most:g}.'
    )


def check_outputs(options: argparse.Namespace) -> None:
  """Raises ValueError if a file could not be written where it should go.

  Makes nothing: a command that fails later leaves no empty folders behind.
  """
  for option in ('output', 'csv'):
    path = getattr(options, option, None)
    if path is None:
      continue
    if path.is_dir():
      raise ValueError(f'{option} must be a file, found the folder {path}.')
    # The nearest folder that exists, in which the missing ones will be made.
    folder = next(p for p in path.absolute().parents if p.exists())
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
      raise ValueError(
          f'{option} must be in a folder that can be written to; {folder} is '
          f'not one, found {path}.'
      )
