"""localupdate-figures: redraws figures from run folders."""

import argparse
import pathlib
import sys
from typing import NoReturn

from baselines.figures import style

_NAME = 'localupdate-figures'
_BAD_INPUT = 2


class _Parser(argparse.ArgumentParser):
  """Reports an error as one line."""

  def error(self, message: str) -> NoReturn:
    self.exit(_BAD_INPUT, f'{_NAME}: error: {message}\n')


def main(arguments: list[str]) -> int:
  """Runs the command; returns its exit code."""
  options = _parser().parse_args(arguments)
  from baselines.figures import load
  from baselines.figures import loss

  try:
    runs = load.load_runs(options.runs)
    loss.draw(
        runs,
        options.output,
        quantity=options.quantity,
        log_scale=options.log_scale,
    )
  except (ValueError, OSError) as error:
    print(f'{_NAME}: error: {error}', file=sys.stderr)
    return _BAD_INPUT
  print(options.output)
  return 0


def _parser() -> argparse.ArgumentParser:
  parser = _Parser(
      prog=_NAME, description='Draws figures from finished run folders.'
  )
  kinds = parser.add_subparsers(dest='figure', required=True, metavar='FIGURE')
  loss = kinds.add_parser(
      'loss', help='a quantity against rounds, one line per rate'
  )
  loss.add_argument(
      '--runs',
      type=pathlib.Path,
      required=True,
      help='a run folder, or a folder of run folders such as a sweep',
  )
  loss.add_argument(
      '--output',
      type=pathlib.Path,
      required=True,
      help='the file to write; its ending says the format: png, pdf, svg',
  )
  loss.add_argument(
      '--quantity',
      choices=tuple(style.QUANTITIES),
      default='population_loss',
      help='the column to draw (default: %(default)s)',
  )
  loss.add_argument(
      '--log_scale', action='store_true', help='logarithmic vertical axis'
  )
  return parser


def run() -> None:
  """The console script."""
  sys.exit(main(sys.argv[1:]))


if __name__ == '__main__':
  run()
