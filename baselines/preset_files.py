"""The flag files that come with the package, by name.

Unlike other flag files, they may hold `--preset` themselves.
"""

import pathlib
from typing import Sequence

_FOLDER = pathlib.Path(__file__).parent / 'presets'
_FLAGS = ('--preset', '-preset')


def names() -> list[str]:
  """Returns the names of all presets."""
  return sorted(path.stem for path in _FOLDER.glob('*.flags'))


def expand(arguments: Sequence[str]) -> list[str]:
  """Returns arguments with the flags of each preset in its place.

  Args:
    arguments: The arguments of a command, some of them `--preset=NAME`.

  Raises:
    ValueError: If there is no such preset; lists those there are.
  """
  expanded = []
  for argument in arguments:
    flag, _, name = argument.partition('=')
    if flag in _FLAGS:
      expanded += expand(_read(name))
    else:
      expanded.append(argument)
  return expanded


def _read(name: str) -> list[str]:
  """Returns the flags of a preset."""
  if name not in names():
    raise ValueError(
        f'preset must be one of {", ".join(names())}; found {name!r}.'
    )
  lines = (_FOLDER / f'{name}.flags').read_text().splitlines()
  stripped = (line.strip() for line in lines)
  return [line for line in stripped if line and not line.startswith('#')]
