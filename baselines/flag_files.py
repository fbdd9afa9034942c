"""Flag files: those that come with the package, by name, and any other.

A file holds a flag a line; lines that start with # are comments. It may hold
`--preset` and `--flagfile` itself. A preset whose first line says that it is
part of another one holds the algorithm without the task.
"""

import pathlib
import re
from typing import Sequence

_FOLDER = pathlib.Path(__file__).parent / 'presets'
_PRESET = ('--preset', '-preset')
_FLAGFILE = ('--flagfile', '-flagfile')
_PART = re.compile(r'# Part of (\w+):')


def names() -> list[str]:
  """Returns the names of all presets."""
  return sorted(path.stem for path in _FOLDER.glob('*.flags'))


def expand(arguments: Sequence[str]) -> list[str]:
  """Returns arguments with the flags of each file in its place.

  Args:
    arguments: The arguments of a command, some of them `--preset=NAME`,
      `--flagfile=PATH` or `--flagfile PATH`.

  Raises:
    ValueError: If there is no such preset (lists those there are), a file
      cannot be read or holds itself, or a preset is part of another one and no
      task is given.
  """
  expanded = _expand(arguments, ())
  names_task = any(
      flag.lstrip('-').partition('=')[0] == 'task' for flag in expanded
  )
  for argument in () if names_task else arguments:
    flag, _, name = argument.partition('=')
    if flag in _PRESET:
      _check_whole(name)
  return expanded


def _check_whole(name: str) -> None:
  part = _PART.match(_preset_path(name).read_text(encoding='utf-8'))
  if part:
    raise ValueError(
        f'preset {name} is part of {part.group(1)} and leaves the task open: '
        f'task must be given, or --preset={part.group(1)} before it.'
    )


def _expand(
    arguments: Sequence[str], within: tuple[pathlib.Path, ...]
) -> list[str]:
  expanded, rest = [], list(arguments)
  while rest:
    argument = rest.pop(0)
    flag, equals, name = argument.partition('=')
    if flag in _FLAGFILE and not equals and rest:
      name = rest.pop(0)
    if flag in _PRESET:
      expanded += _read(_preset_path(name), within)
    elif flag in _FLAGFILE:
      expanded += _read(pathlib.Path(name).expanduser(), within)
    else:
      expanded.append(argument)
  return expanded


def _preset_path(name: str) -> pathlib.Path:
  if name not in names():
    raise ValueError(
        f'preset must be one of {", ".join(names())}; found {name!r}.'
    )
  return _FOLDER / f'{name}.flags'


def _read(path: pathlib.Path, within: tuple[pathlib.Path, ...]) -> list[str]:
  """Returns the flags of a file, those of files that it names included."""
  resolved = path.resolve()
  if resolved in within:
    raise ValueError(f'flagfile must not hold itself, found {path}.')
  try:
    lines = path.read_text(encoding='utf-8').splitlines()
  except (OSError, ValueError) as error:
    raise ValueError(
        f'flagfile must be a file that can be read: {error}.'
    ) from error
  stripped = (line.strip() for line in lines)
  flags = [f for f in stripped if f and not f.startswith(('#', '//'))]
  return _expand(flags, (*within, resolved))
