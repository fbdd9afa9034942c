"""What this process and those that it started have used, read from /proc."""

import os
import time

_TICKS = os.sysconf('SC_CLK_TCK')


def children() -> set[int]:
  """Returns the ids of the processes that this one has started."""
  found = set()
  for task in os.listdir('/proc/self/task'):
    with open(f'/proc/self/task/{task}/children', encoding='utf-8') as file:
      found |= set(map(int, file.read().split()))
  return found


def cpu_seconds() -> float:
  """Returns the seconds of all cores so far, of them all together."""
  return time.process_time() + sum(map(_cpu_seconds_of, children()))


def peak_mib() -> float:
  """Returns the sum of their peaks of resident memory, in MiB."""
  return sum(map(_peak_mib_of, ['self', *children()]))


def _cpu_seconds_of(pid: int) -> float:
  with open(f'/proc/{pid}/stat', encoding='utf-8') as file:
    # The name, in brackets, may hold spaces; the state comes after it.
    fields = file.read().rpartition(')')[2].split()
  user, system = fields[11:13]
  return (int(user) + int(system)) / _TICKS


def _peak_mib_of(pid: object) -> float:
  with open(f'/proc/{pid}/status', encoding='utf-8') as file:
    for line in file:
      if line.startswith('VmHWM:'):
        return int(line.split()[1]) / 1024
  return 0.0  # Ended, but not yet waited for.
