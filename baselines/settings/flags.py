"""Flags: from arguments, files and keywords to settings.

A flag is named as its setting, takes its type, and has its help text. Nothing
here knows a setting by name, and nothing below the commands sees a flag. The
keywords of the Python interface become arguments first, so both are refused in
the same words.

A flag file has a flag a line; lines that start with # are comments. It may hold
`--preset` and `--flagfile` itself. The files that come with the package are
presets, and have names. A preset whose first line starts with `# Part of` has
no task of its own and goes after one that has.
"""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
import difflib
import itertools
import pathlib
import textwrap
from typing import Any, NamedTuple, Optional

from absl import flags

from baselines import command
from baselines.settings import algorithms
from baselines.settings import experiment
from baselines.settings import schema

_FOLDER = pathlib.Path(__file__).parents[1] / 'presets'
_PRESET = ('--preset', '-preset')
_FLAGFILE = ('--flagfile', '-flagfile')
_PART = '# Part of '


class Flag(NamedTuple):
  """An argument of a command; the source is its preset or file, if any."""

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

  The arguments follow those of `before`, which are expanded already.

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

  `source` is the file that the command names and that they come from, `within`
  all such files, the outermost first.
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


_WIDTH = 80
_DEFINE = {
    bool: flags.DEFINE_boolean,
    int: flags.DEFINE_integer,
    float: flags.DEFINE_float,
    str: flags.DEFINE_string,
}


@dataclasses.dataclass(frozen=True)
class AlgorithmChoice:
  """Which algorithm runs."""

  algorithm: str = schema.setting(
      'local_update', 'The algorithm.', choices=tuple(algorithms.ALGORITHMS)
  )

  def __post_init__(self) -> None:
    schema.check_settings(self)


class Parsed(NamedTuple):
  """What flags say: an experiment's settings, and in `extra` the command's.

  The values of the flags that were given are in `given`, by name.
  """

  config: experiment.ExperimentConfig
  extra: dict[type, Any]
  given: dict[str, schema.Value]


def parse_experiment(
    arguments: Sequence[str], description: str, *extra: type
) -> Parsed:
  """Reads an experiment's settings, and those of the command, from flags.

  The description, of what the command does, is for `--help`; `extra` are the
  dataclasses of the command's own settings, here and below.

  Raises:
    command.HelpRequested: If the help is asked for.
    command.InputError: If a flag is unknown, or a value or a combination of
      values is refused.
  """
  given = parse(arguments, description, *extra)
  return Parsed(build_experiment(given), build_own(given, *extra), given)


def build_experiment(
    given: Mapping[str, schema.Value]
) -> experiment.ExperimentConfig:
  """Returns the settings of an experiment from those that are not defaults.

  Those of a command are passed over. Raises `InputError` if a value or a
  combination of values is refused.
  """
  choice = _build(AlgorithmChoice, given)
  entry = algorithms.ALGORITHMS[choice.algorithm]
  chosen = {'algorithm': entry.config_type}
  if entry.has_server_optimizer:
    chosen['server_optimizer'] = experiment.ServerOptimizerConfig
    chosen['rate'] = experiment.RateConfig
  _refuse_foreign(given, choice.algorithm, list(chosen.values()))
  parts = {
      'task': experiment.TaskConfig,
      **chosen,
      'run': experiment.RunConfig,
      'execution': experiment.ExecutionConfig,
  }
  try:
    return experiment.ExperimentConfig(
        **{name: _build(kind, given) for name, kind in parts.items()}
    )
  except ValueError as error:
    raise command.InputError(command.one_line(error)) from error


def build_own(
    given: Mapping[str, schema.Value], *extra: type
) -> dict[type, Any]:
  """Returns own settings by dataclass; `InputError` if one is refused."""
  return {kind: _build(kind, given) for kind in extra}


def arguments_of(
    keywords: Mapping[str, Any],
    *extra: type,
    refused: Sequence[str] = (),
) -> list[str]:
  """Returns keywords of the Python interface as arguments of a command.

  `preset` and `flagfile` take one or several texts, and come first. None is the
  same as not given where that is the default. Of the command's settings, those
  in `refused` are not taken. Raises `InputError` if a setting is unknown or a
  value has another type.
  """
  rest = dict(keywords)
  arguments = []
  for name in ('preset', 'flagfile'):
    files = rest.pop(name, None) or ()
    files = [files] if isinstance(files, (str, pathlib.Path)) else files
    arguments += [f'--{name}={file}' for file in files]
  for name, value in rest.items():
    value = typed_setting(name, value, *extra, refused=refused)
    if value is not None:
      text = str(value).lower() if isinstance(value, bool) else str(value)
      arguments.append(f'--{name}={text}')
  return arguments


def typed_setting(
    name: str, value: Any, *extra: type, refused: Sequence[str] = ()
) -> schema.Value:
  """Returns a value as the type of a declared setting; see `arguments_of`."""
  fields = [
      field
      for kind in all_types(extra)
      for field in dataclasses.fields(kind)
      if field.name == name and name not in refused
  ]
  if not fields:
    known = {field.name for field in _fields(all_types(extra))}
    raise command.InputError(_unknown_text(name, known - set(refused)))
  if value is None and any(field.default is None for field in fields):
    return None
  try:
    return schema.typed(name, value, schema.value_type(fields[0]))
  except ValueError as error:
    raise command.InputError(str(error)) from error


def _algorithm_types() -> list[type]:
  return [e.config_type for e in algorithms.ALGORITHMS.values()]


def all_types(extra: Sequence[type] = ()) -> list[type]:
  """Returns the dataclasses of all settings, those of a command at the end."""
  return [experiment.TaskConfig, AlgorithmChoice, *_algorithm_types(),
          experiment.ServerOptimizerConfig, experiment.RateConfig,
          experiment.RunConfig, experiment.ExecutionConfig, *extra]


def parse(
    arguments: Sequence[str], description: str, *extra: type
) -> dict[str, schema.Value]:
  """Returns the values of the settings given; raises as `parse_experiment`."""
  types = all_types(extra)
  if any(a in ('-h', '--help', '-help', '--helpfull') for a in arguments):
    raise command.HelpRequested(help_text(description, types))
  arguments = expanded(arguments)
  if any(a.lstrip('-').startswith('undefok') for a in arguments):
    raise command.InputError('undefok is no flag here: none may be unknown.')
  values = flags.FlagValues()
  for field in _fields(types):
    define = _DEFINE[schema.value_type(field)]
    define(field.name, None, field.metadata['help'], flag_values=values)
  try:
    rest = values(['command', *arguments])[1:]
  except (flags.Error, UnicodeDecodeError) as error:
    raise command.InputError(_flag_error_text(error, values)) from error
  if rest:
    raise command.InputError(
        f'flags must start with --, found the argument {rest[0]!r}.'
    )
  return {n: values[n].value for n in values if values[n].present}


def expanded(
    arguments: Sequence[str], before: Sequence[str] = ()
) -> list[str]:
  """Returns arguments without presets and flag files; see `expand`.

  Raises `InputError` where that raises ValueError.
  """
  try:
    return expand(arguments, before)
  except ValueError as error:
    raise command.InputError(command.one_line(error)) from error


def _flag_error_text(error: Exception, known: Iterable[str]) -> str:
  if isinstance(error, flags.UnrecognizedFlagError):
    return _unknown_text(error.flagname, known)
  return command.one_line(error)


def _unknown_text(name: str, known: Iterable[str]) -> str:
  """Says that there is no such setting, and which one may have been meant."""
  if name.startswith('sweep_'):
    return (
        f'{name} is a flag of localupdate-sweep, as are all presets that hold '
        'it.'
    )
  text = f'Unknown setting {name!r}.'
  nearest = difflib.get_close_matches(name, known, n=1)
  return f'{text} Did you mean {nearest[0]}?' if nearest else text


def help_text(description: str, types: Sequence[type]) -> str:
  """Returns the text that `--help` prints: every flag of `types`."""
  lines = [textwrap.fill(description, _WIDTH), '']
  lines += ['--flagfile=FILE', *_indented(
      'Read flags from FILE: one per line, # starts a comment. Of two values '
      'for a flag the later one wins, but a flag typed before a file that '
      'would override it is refused.'
  )]
  lines += ['--preset=NAME', *_indented(
      'Read the flag file of this name that comes with the package. One of: '
      f'{", ".join(names())}.'
  )]
  seen = set()
  for kind in types:
    # Algorithms share settings, but not always their defaults.
    texts = [
        (_heading(field), *_indented(_described(field)))
        for field in dataclasses.fields(kind)
    ]
    new = [text for text in texts if text not in seen]
    if new:
      lines += ['', kind.__doc__.split('\n')[0], *itertools.chain(*new)]
    seen.update(new)
  return '\n'.join(lines)


def _heading(field: dataclasses.Field) -> str:
  if field.default is None:
    return f'--{field.name}'
  return f'--{field.name} (default: {field.default})'


def _described(field: dataclasses.Field) -> str:
  text = field.metadata['help']
  if field.metadata['choices']:
    text += f' One of: {", ".join(field.metadata["choices"])}.'
  return text


def _indented(text: str) -> list[str]:
  indent = ' ' * 6
  return textwrap.wrap(
      text, _WIDTH, initial_indent=indent, subsequent_indent=indent
  )


def _fields(types: Sequence[type]) -> list[dataclasses.Field]:
  by_name = {f.name: f for kind in types for f in dataclasses.fields(kind)}
  return list(by_name.values())


def _build(kind: type, given: Mapping[str, schema.Value]) -> Any:
  names = {f.name for f in dataclasses.fields(kind)}
  try:
    return kind(**{k: v for k, v in given.items() if k in names})
  except ValueError as error:
    raise command.InputError(command.one_line(error)) from error


def _refuse_foreign(
    given: Mapping[str, schema.Value], name: str, chosen: Sequence[type]
) -> None:
  """Refuses settings that only algorithms have which are not chosen."""
  others = [*_algorithm_types(), experiment.ServerOptimizerConfig,
            experiment.RateConfig]
  own = {field.name: field for field in _fields(chosen)}
  foreign = {field.name for field in _fields(others)} - own.keys()
  for setting in given:
    if setting in foreign:
      tied = [n for n, f in own.items() if setting in f.metadata['ties']]
      hint = f', whose {tied[0]} stands for it' if tied else ''
      raise command.InputError(
          f'{setting} would be ignored: algorithm is {name!r}{hint}.'
      )
