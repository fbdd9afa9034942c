"""The public surface of the library."""

import importlib
import subprocess
import sys

import pytest

import tff_localupdate

PUBLIC = (
    'CealProcess',
    'InProcessContext',
    'LocalSteps',
    'LocalUpdateProcess',
    'PlateauRule',
    'QuantizedMeanFactory',
    'RateSchedule',
    'Theta',
    'build_ceal',
    'build_local_update',
    'build_local_update_decay',
    'build_local_update_epochs',
    'build_local_update_learning_process',
    'build_maml',
    'build_scheduled',
    'compile_process',
    'parse_theta',
    'set_default_context',
)


def test_public_names_are_these_and_exist():
  assert tff_localupdate.__all__ == PUBLIC
  for name in PUBLIC:
    assert getattr(tff_localupdate, name).__name__ == name
  assert set(PUBLIC) <= set(dir(tff_localupdate))


def test_unknown_names_are_attribute_errors():
  with pytest.raises(AttributeError, match='no attribute'):
    _ = importlib.import_module('tff_localupdate').nothing


def test_import_alone_does_not_import_tensorflow():
  code = (
      'import sys, tff_localupdate; tff_localupdate.Theta.ones(3); '
      'sys.exit("tensorflow" in sys.modules)'
  )
  assert subprocess.run([sys.executable, '-c', code]).returncode == 0
