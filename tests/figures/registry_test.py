"""Every figure can be asked for, and asking loads nothing heavy."""

import argparse
import subprocess
import sys

import pytest

from baselines.figures import registry
from tests.structure import sources


@pytest.mark.parametrize('name', registry.FIGURES)
def test_command_has_its_two_functions(name):
  command = registry.import_command(name)
  parser = argparse.ArgumentParser()
  command.add_options(parser)
  assert parser.format_help()
  assert callable(command.draw_from)
  assert registry.FIGURES[name].help


def test_options_load_neither_matplotlib_nor_pandas():
  program = (
      'import argparse, sys\n'
      'from baselines.figures import registry\n'
      'for name in registry.FIGURES:\n'
      '  parser = argparse.ArgumentParser()\n'
      '  registry.import_command(name).add_options(parser)\n'
      'heavy = {"matplotlib", "pandas", "tensorflow"} & set(sys.modules)\n'
      'assert not heavy, heavy\n'
  )
  done = subprocess.run(
      [sys.executable, '-c', program],
      cwd=sources.ROOT, capture_output=True, text=True, timeout=60,
  )
  assert done.returncode == 0, done.stderr
