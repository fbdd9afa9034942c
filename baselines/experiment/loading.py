"""Imports TensorFlow Federated late, and says so."""

import contextlib
import gc
import os
import sys
import time
from typing import Iterator

from baselines.experiment import command


@contextlib.contextmanager
def announced() -> Iterator[None]:
  """Surrounds an import that needs TensorFlow Federated.

  It takes 3 to 30 seconds, which without a word looks like a hang.
  """
  # TensorFlow 2.14 greets everybody with errors that are none, such as cuDNN
  # being registered twice. What matters is raised in Python; set the variable
  # to 0 to see all messages.
  os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
  command.report('loading TensorFlow Federated ...')
  started = time.monotonic()
  with _without_collections():
    yield
  command.report(f'loaded in {time.monotonic() - started:.0f} s')


@contextlib.contextmanager
def _without_collections() -> Iterator[None]:
  """Surrounds the import, which makes a million objects, nearly all to stay.

  Looking through them for garbage time and again takes a quarter of its time,
  and later collections would look through them too. Does nothing where TFF is
  there already.
  """
  if 'tensorflow_federated' in sys.modules or not gc.isenabled():
    yield
    return
  gc.disable()
  try:
    yield
    gc.freeze()
  finally:
    gc.enable()
