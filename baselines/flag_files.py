"""Flag files: those that come with the package, by name, and any other.

A file holds a flag a line; lines that start with # are comments. It may hold
`--preset` and `--flagfile` itself. A preset whose first line starts with
`# Part of` has no task of its own and goes after one that has.
"""

from collections.abc import Sequence
import pathlib
from typing import NamedTuple, Optional

_FOLDER = pathlib.Path(__file__).parent / 'presets'
_PRESET = ('--preset', '-preset')
_FLAGFILE = ('--flagfile', '-flagfile')
_PART = '# Part of '


class Flag(NamedTuple):
  """An argument of a command.

  Attributes:
    text: As it was given.
    source: The preset or file that it was given by; None if it was typed.
  """

  text: str
  source: Optional[str] = None

  @property
  def name(self) -> str:
    """The name of the flag; empty for a value that follows its flag."""
    text = self.text.partition('=')[0]
    return text.lstrip('-') if text.startswith('-') else ''


def names() -> list[str]:
  """Returns the names of all presets."""
  return sorted(path.stem for path in _FOLDER.glob('*.flags'))


def expand(arguments: Sequence[str], before: Sequence[str] = ()) -> list[str]:
  """Returns arguments with the flags of each file in its place.

  Args:
    arguments: The arguments of a command, some of them `--preset=NAME`,
      `--flagfile=PATH` or `--flagfile PATH`.
    before: Expanded arguments that they follow.

  Raises:
    ValueError: If there is no such preset (lists those there are), a file
      cannot be read or holds itself, a preset that is part of others comes
      before the task, or a file sets what was typed in front of it.
  """
  flags = [Flag(text) for text in before]
  _expand(arguments, None, (), flags)
  flags = flags[len(before):]
  _check_none_ignored(flags)
  return [flag.text for flag in flags]


def typed(arguments: Sequence[str]) -> list[Flag]:
  """Returns the flags among the arguments that no preset or file stands for."""
  files = {name.lstrip('-') for name in (*_PRESET, *_FLAGFILE)}
  flags = map(Flag, arguments)
  return [flag for flag in flags if flag.name and flag.name not in files]


def _expand(
    arguments: Sequence[str],
    source: Optional[str],
    within: tuple[pathlib.Path, ...],
    flags: list[Flag],
) -> None:
  """Appends the flags that the arguments stand for.

  Args:
    arguments: The arguments.
    source: The file that the command names and that they come from, if any.
    within: All files that they come from, the outermost first.
    flags: What came before.
  """
  rest = list(arguments)
  while rest:
    argument = rest.pop(0)
    flag, equals, name = argument.partition('=')
    if flag in _FLAGFILE and not equals and rest:
      name = rest.pop(0)
    if flag in _PRESET:
      path = _preset_path(name)
      if not any(file.parent == _FOLDER.resolve() for file in within):
        _check_order(path, flags)
      _expand_file(path, source or f'preset {name}', within, flags)
    elif flag in _FLAGFILE:
      path = pathlib.Path(name).expanduser()
      _expand_file(path, source or f'flagfile {name}', within, flags)
    else:
      flags.append(Flag(argument, source))


def _expand_file(
    path: pathlib.Path,
    source: str,
    within: tuple[pathlib.Path, ...],
    flags: list[Flag],
) -> None:
  resolved = path.resolve()
  if resolved in within:
    raise ValueError(f'flagfile must not hold itself, found {path}.')
  stripped = (line.strip() for line in _read(path).splitlines())
  found = [f for f in stripped if f and not f.startswith(('#', '//'))]
  for flag in found:
    value = flag.partition('=')[2]
    if ' #' in flag or value[:1] in ('"', "'"):
      raise ValueError(
          f'flagfile must have comments on lines of their own, and values '
          f'without quotes, found {flag!r} in {path}.'
      )
  _expand(found, source, (*within, resolved), flags)


def _read(path: pathlib.Path) -> str:
  try:
    return path.read_text(encoding='utf-8')
  except (OSError, ValueError) as error:
    raise ValueError(
        f'flagfile must be a file that can be read: {error}.'
    ) from error


def _preset_path(name: str) -> pathlib.Path:
  if name not in names():
    raise ValueError(
        f'preset must be one of {", ".join(names())}; found {name!r}.'
    )
  return _FOLDER / f'{name}.flags'


def _check_order(path: pathlib.Path, before: Sequence[Flag]) -> None:
  """Raises ValueError if a part of others has no task in front of it."""
  text = _read(path)
  if text.startswith(_PART) and 'task' not in {flag.name for flag in before}:
    whole = text.splitlines()[0][len(_PART) :].partition(':')[0].rstrip('.')
    raise ValueError(
        f'preset {path.stem}, a part of {whole}, must come after task or after '
        'a preset that gives it.'
    )


def _check_none_ignored(flags: Sequence[Flag]) -> None:
  """Raises ValueError if a file sets what was typed in front of it."""
  last = {flag.name: flag for flag in flags}  # The last one wins.
  for flag in flags:
    winner = last[flag.name]
    if flag.name and flag.source is None and winner.source is not None:
      if winner.text != flag.text:
        raise ValueError(
            f'{flag.name} would be ignored: {winner.source} comes after it and '
            f'has {winner.text}, found {flag.text} in front of it.'
        )
