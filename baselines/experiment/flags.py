"""Command-line flags, derived from the settings' dataclasses.

A flag is named as the setting, takes its type, and has its help text. Nothing
here knows a setting by name, and nothing below the commands sees a flag.
"""

import dataclasses
import itertools
import textwrap
from typing import Any, NamedTuple, Sequence

from absl import flags

from baselines import flag_files
from baselines import settings
from baselines.algorithms import registry as algorithms
from baselines.experiment import command
from baselines.experiment import config as config_lib

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

  algorithm: str = settings.setting(
      'local_update', 'The algorithm.', choices=tuple(algorithms.ALGORITHMS)
  )

  def __post_init__(self) -> None:
    settings.check_settings(self)


class Parsed(NamedTuple):
  """What flags say.

  Attributes:
    config: The experiment's settings.
    extra: The command's own settings, by their dataclass.
    given: Names of the flags that were given.
  """

  config: config_lib.ExperimentConfig
  extra: dict[type, Any]
  given: frozenset[str]


def parse_experiment(
    arguments: Sequence[str], description: str, *extra: type
) -> Parsed:
  """Reads an experiment's settings, and those of the command, from flags.

  Args:
    arguments: The command's arguments.
    description: What the command does, for `--help`.
    *extra: Dataclasses of the command's own settings.

  Returns:
    The `Parsed` settings.

  Raises:
    command.HelpRequested: If the help is asked for.
    command.InputError: If a flag is unknown, or a value or a combination of
      values is refused.
  """
  given = parse(arguments, description, _all_types(extra))
  choice = _build(AlgorithmChoice, given)
  entry = algorithms.ALGORITHMS[choice.algorithm]
  chosen = {'algorithm': entry.config_type}
  if entry.has_server_optimizer:
    chosen['server_optimizer'] = config_lib.ServerOptimizerConfig
    chosen['rate'] = config_lib.RateConfig
  _refuse_foreign(
      given, choice.algorithm, list(chosen.values()),
      [*_algorithm_types(), config_lib.ServerOptimizerConfig,
       config_lib.RateConfig],
  )
  parts = {
      'task': config_lib.TaskConfig,
      **chosen,
      'run': config_lib.RunConfig,
      'execution': config_lib.ExecutionConfig,
  }
  try:
    config = config_lib.ExperimentConfig(
        **{name: _build(kind, given) for name, kind in parts.items()}
    )
  except ValueError as error:
    raise command.InputError(command.one_line(error)) from error
  own = {kind: _build(kind, given) for kind in extra}
  return Parsed(config, own, frozenset(given))


def parse_own(
    arguments: Sequence[str], description: str, *extra: type
) -> dict[type, Any]:
  """Reads the settings of the command alone from the flags of all.

  Args:
    arguments: The command's arguments.
    description: What the command does, for `--help`.
    *extra: Dataclasses of the command's own settings.

  Returns:
    The settings by their dataclass.

  Raises:
    command.HelpRequested: If the help is asked for.
    command.InputError: If a flag is unknown, or a value is refused.
  """
  given = parse(arguments, description, _all_types(extra))
  return {kind: _build(kind, given) for kind in extra}


def _algorithm_types() -> list[type]:
  return [e.config_type for e in algorithms.ALGORITHMS.values()]


def _all_types(extra: Sequence[type]) -> list[type]:
  return [config_lib.TaskConfig, AlgorithmChoice, *_algorithm_types(),
          config_lib.ServerOptimizerConfig, config_lib.RateConfig,
          config_lib.RunConfig, config_lib.ExecutionConfig, *extra]


def parse(
    arguments: Sequence[str], description: str, types: Sequence[type]
) -> dict[str, Any]:
  """Returns the values of those settings of `types` that flags give.

  Raises:
    command.HelpRequested: If the help is asked for.
    command.InputError: If a flag is unknown or its value has another type.
  """
  if any(a in ('-h', '--help', '-help', '--helpfull') for a in arguments):
    raise command.HelpRequested(help_text(description, types))
  arguments = expanded(arguments)
  if any(a.lstrip('-').startswith('undefok') for a in arguments):
    raise command.InputError('undefok is no flag here: none may be unknown.')
  values = flags.FlagValues()
  for field in _fields(types):
    define = _DEFINE[settings.value_type(field)]
    define(field.name, None, field.metadata['help'], flag_values=values)
  try:
    rest = values(['command', *arguments])[1:]
  except (flags.Error, UnicodeDecodeError) as error:
    raise command.InputError(_flag_error_text(error)) from error
  if rest:
    raise command.InputError(
        f'flags must start with --, found the argument {rest[0]!r}.'
    )
  return {n: values[n].value for n in values if values[n].present}


def expanded(
    arguments: Sequence[str], before: Sequence[str] = ()
) -> list[str]:
  """Returns arguments without presets and flag files.

  Args:
    arguments: Arguments of a command.
    before: Arguments without presets that they follow.

  Raises:
    command.InputError: As `flag_files.expand` raises ValueError.
  """
  try:
    return flag_files.expand(arguments, before)
  except ValueError as error:
    raise command.InputError(command.one_line(error)) from error


def _flag_error_text(error: Exception) -> str:
  """Returns the message, and for a flag of sweeps the command that has it."""
  text = command.one_line(error)
  if isinstance(error, flags.UnrecognizedFlagError):
    if error.flagname.startswith('sweep_'):
      text = (
          f'{error.flagname} is a flag of localupdate-sweep, as are all '
          'presets that hold it.'
      )
  return text


def help_text(description: str, types: Sequence[type]) -> str:
  """Returns the text that `--help` prints: every flag of `types`."""
  lines = [textwrap.fill(description, _WIDTH), '']
  lines += ['--flagfile=FILE', *_indented(
      'Read flags from FILE, one a line, # starts a comment. A flag that comes '
      'later wins; what is typed must not come in front of a file that has '
      'another value for it.'
  )]
  lines += ['--preset=NAME', *_indented(
      'Read the flags that come with the package under this name. One of: '
      f'{", ".join(flag_files.names())}.'
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


def _build(kind: type, given: dict[str, Any]) -> Any:
  names = {f.name for f in dataclasses.fields(kind)}
  try:
    return kind(**{k: v for k, v in given.items() if k in names})
  except ValueError as error:
    raise command.InputError(command.one_line(error)) from error


def _refuse_foreign(
    given: dict[str, Any], name: str, chosen: Sequence[type],
    others: Sequence[type],
) -> None:
  """Refuses flags that only algorithms have which are not chosen."""
  own = {field.name for field in _fields(chosen)}
  foreign = {field.name for field in _fields(others)} - own
  for flag in given:
    if flag in foreign:
      raise command.InputError(
          f'{flag} would be ignored: algorithm is {name!r}.'
      )
