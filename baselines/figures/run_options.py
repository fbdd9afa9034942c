"""The option that says which run folders a figure is made of."""

import argparse
import pathlib


def add_runs_option(parser: argparse.ArgumentParser) -> None:
  """Adds `--runs`, which may be given more than once."""
  parser.add_argument(
      '--runs',
      type=pathlib.Path,
      action='append',
      required=True,
      help='a run folder, or a folder of run folders such as a sweep; may be '
      'given more than once',
  )
