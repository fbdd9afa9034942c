"""localupdate-figures: draws figures from run folders and from theory."""

import argparse
import sys
from typing import NoReturn

from baselines import command
from baselines.figures import outputs
from baselines.figures import registry

_NAME = 'localupdate-figures'
_BAD_INPUT = 2


class _Parser(argparse.ArgumentParser):
  """Reports an error as one line; takes no shortened options."""

  def __init__(self, **arguments):
    super().__init__(allow_abbrev=False, **arguments)

  def error(self, message: str) -> NoReturn:
    self.exit(_BAD_INPUT, f'{_NAME}: error: {message}\n')


def main(arguments: list[str]) -> int:
  """Runs the command; returns its exit code."""
  options = _parser().parse_args(arguments)
  try:
    outputs.check_outputs(options)
    numbers = registry.import_command(options.figure).draw_from(options)
    written = outputs.save_numbers(options, numbers)
  except (ValueError, OSError) as error:
    line = ' '.join(str(error).split())
    print(f'{_NAME}: error: {line}', file=sys.stderr)
    return _BAD_INPUT
  for path in written:
    print(path)
  return 0


def _parser() -> argparse.ArgumentParser:
  parser = _Parser(
      prog=_NAME,
      description='Draws figures from finished run folders, and from theory.',
  )
  kinds = parser.add_subparsers(dest='figure', required=True, metavar='FIGURE')
  for name, entry in registry.FIGURES.items():
    kind = kinds.add_parser(name, help=entry.help, description=entry.help)
    registry.import_command(name).add_options(kind)
  return parser


def run() -> None:
  """The console script."""
  with command.patient():
    code = main(sys.argv[1:])
  sys.exit(code)


if __name__ == '__main__':
  run()
