"""Parts of a sweep, for machines or devices that work side by side."""

from typing import Sequence, TypeVar

_Point = TypeVar('_Point')


def parse_shard(text: str) -> tuple[int, int]:
  """Returns (i, n) of `i/n`, 1 <= i <= n.

  Raises:
    ValueError: If `text` is none.
  """
  first, _, second = text.partition('/')
  if not (first.isdecimal() and second.isdecimal()):
    raise ValueError(f'shard must be i/n, such as 2/8, found {text!r}.')
  index, count = int(first), int(second)
  if not 1 <= index <= count:
    raise ValueError(f'shard must be i/n with 1 <= i <= n, found {text!r}.')
  return index, count


def shard_of(points: Sequence[_Point], text: str) -> list[_Point]:
  """Returns the points of a shard.

  Neighbours in a sweep share a program, so a shard is a run of neighbours.
  Sizes differ by one at most.

  Args:
    points: All points.
    text: `i/n`.

  Raises:
    ValueError: If `text` is none.
  """
  index, count = parse_shard(text)
  first, last = (
      k * len(points) // count for k in (index - 1, index)
  )
  return list(points[first:last])
