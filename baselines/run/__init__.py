"""One experiment: its folder, data, loop and records.

The package is also the function `baselines.run`; see `run.main.train`.
Python binds the name of a package in the one above it, so the two that share
the name have to be one object.
"""

import importlib
import sys
import types
from typing import Any


class _CallablePackage(types.ModuleType):

  def __call__(self, **settings: Any) -> Any:
    """Runs one experiment; see `baselines.run.main.train`."""
    return importlib.import_module('baselines.run.main').train(**settings)


sys.modules[__name__].__class__ = _CallablePackage
