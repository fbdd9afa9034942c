"""Imports TensorFlow Federated late, and says so."""

import contextlib
import os
import time
from typing import Iterator

from baselines.experiment import command


@contextlib.contextmanager
def announced() -> Iterator[None]:
  """Surrounds an import that needs TensorFlow Federated.

  It takes 10 to 30 seconds, which without a word looks like a hang.
  """
  # TensorFlow 2.14 greets everybody with errors that are none, such as cuDNN
  # being registered twice. What matters is raised in Python; set the variable
  # to 0 to see all messages.
  os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
  command.report('loading TensorFlow Federated ...')
  started = time.monotonic()
  yield
  command.report(f'loaded in {time.monotonic() - started:.0f} s')
