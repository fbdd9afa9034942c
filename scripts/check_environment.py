"""Says what is wrong with the environment this interpreter belongs to.

Takes the names of locks, by default requirements.txt. Every package of them
that is meant for this Python must be there, at exactly that version, with every
file that its installation recorded, and so must tff-localupdate itself with its
commands. Only metadata is read: nothing is imported, so the check takes well
under a second. Prints the first fault and exits with 1, or prints `complete`
and exits with 0.
"""

import csv
import importlib.metadata
import os
import sys
from typing import Optional


def find_lock_fault(lock_path: str) -> Optional[str]:
  """Returns the first difference to a lock as text, or None.

  Args:
    lock_path: A requirements file of `name==version [; marker]` lines.
  """
  try:
    from packaging.requirements import Requirement
  except ImportError:  # It is part of the lock, so it may be what is missing.
    return 'packaging is not installed'
  with open(lock_path, encoding='utf-8') as lock:
    lines = [line.strip() for line in lock]
  for line in lines:
    if line and not line.startswith('#'):
      requirement = Requirement(line)
      if requirement.marker is None or requirement.marker.evaluate():
        fault = find_package_fault(requirement.name, str(requirement.specifier))
        if fault:
          return fault
  return None


def find_package_fault(name: str, specifier: str = '') -> Optional[str]:
  """Returns what is wrong with one installed package as text, or None.

  Args:
    name: The distribution's name.
    specifier: `==version`, or nothing where any version will do.
  """
  try:
    distribution = importlib.metadata.distribution(name)
  except importlib.metadata.PackageNotFoundError:
    return f'{name} is not installed'
  if specifier not in ('', f'=={distribution.version}'):
    return f'{name} is at {distribution.version}, not {specifier}'
  record = distribution.read_text('RECORD')
  if not record:
    return f'{name} has no RECORD of its files'
  folder = distribution.locate_file('')
  for row in csv.reader(record.splitlines()):
    # Compiled files come and go with the interpreter.
    if row and not row[0].endswith('.pyc'):
      if not os.path.exists(os.path.join(folder, row[0])):
        return f'{name} lacks its file {row[0]}'
  return None


if __name__ == '__main__':
  root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
  fault_found = None
  for name in sys.argv[1:] or ['requirements.txt']:
    fault_found = fault_found or find_lock_fault(os.path.join(root, name))
  fault_found = fault_found or find_package_fault('tff-localupdate')
  print(fault_found or 'complete')
  sys.exit(1 if fault_found else 0)
