"""Sequences side by side."""


def pairs(first, second):
  """Returns what `zip(strict=True)` would, which Python 3.9 does not have."""
  first, second = list(first), list(second)
  assert len(first) == len(second)
  return list(zip(first, second))
