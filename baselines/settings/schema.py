"""Declared settings: fields of frozen dataclasses that check themselves.

A component's settings are one frozen dataclass. Each field is declared with
`setting`, which keeps its help text and its rule beside the default, and
`check_settings`, called in `__post_init__`, brings every value to the declared
type and refuses what breaks the rule. Flags are derived from the same fields.
"""

from collections.abc import Callable
import dataclasses
import math
import numbers
import operator
import os
import typing
from typing import Any, Optional, Union

Value = Union[bool, int, float, str, None]


def setting(
    default: Value,
    help_text: str,
    *,
    minimum: Optional[float] = None,
    above: Optional[float] = None,
    below: Optional[float] = None,
    choices: tuple[str, ...] = (),
    recorded_at_default: bool = True,
    recorded_in: Optional[str] = None,
    ties: tuple[str, ...] = (),
) -> Any:
  """Declares one setting, as a dataclass field.

  Args:
    default: The value when none is given. None means that the setting depends
      on another one: it is filled in where it is used and stays None elsewhere.
    help_text: One sentence for `--help`.
    minimum: The smallest number allowed.
    above: What the number must be greater than.
    below: What the number must be less than.
    choices: The texts allowed.
    recorded_at_default: Whether records hold it when it has its default. False
      for a setting that came after the first records: the runs that were made
      without it keep their names and go on.
    recorded_in: The component whose part of a record holds it, if not its own.
    ties: The rates that it stands for where one number is behind several, by
      the names that other algorithms have for them.
  """
  rules = {
      'help': help_text,
      'minimum': minimum,
      'above': above,
      'below': below,
      'choices': choices,
      'recorded_at_default': recorded_at_default,
      'recorded_in': recorded_in,
      'ties': ties,
  }
  return dataclasses.field(default=default, metadata=rules)


def value_type(field: dataclasses.Field) -> type:
  """Returns `bool`, `int`, `float` or `str`, without the Optional around it."""
  kinds = [k for k in typing.get_args(field.type) if k is not type(None)]
  return kinds[0] if kinds else field.type


def check_settings(config: Any) -> None:
  """Brings all fields of a frozen dataclass to their types and checks rules.

  Any integer type is an integer here (a NumPy integer becomes a Python one),
  any real number a float; a bool is neither. Changes `config` in place: meant
  to be called from its `__post_init__`. Raises ValueError, which names the
  setting, its rule and the value found.
  """
  for field in dataclasses.fields(config):
    value = getattr(config, field.name)
    if value is None and field.default is None:
      continue
    value = typed(field.name, value, value_type(field))
    _check_rules(field, value)
    object.__setattr__(config, field.name, value)


def is_recorded(field: dataclasses.Field, value: Value) -> bool:
  """Whether records of a run hold this value of a setting."""
  return value is not None and (
      field.metadata['recorded_at_default'] or value != field.default
  )


def is_required(field: dataclasses.Field) -> bool:
  """Whether every record of a run holds the setting."""
  return is_recorded(field, field.default)


def fill_setting(config: Any, name: str, default: Value) -> None:
  """Gives the setting `name` of a frozen `config` its default if it is None."""
  if getattr(config, name) is None:
    object.__setattr__(config, name, default)


def own_setting(owner: str, own: Any) -> tuple[Any, Any]:
  """Returns type and field of a setting that only the choice `owner` reads."""
  field = setting(
      None,
      f'{owner}: {own.help}; by default {own.default}.',
      minimum=own.minimum,
      above=own.above,
      below=own.below,
  )
  return Optional[type(own.default)], field


def fill_own_settings(
    config: Any,
    choice: str,
    table: Any,
    full_name_fn: Callable[[str, str], str],
) -> None:
  """Fills in the settings of what is chosen, and refuses those of the rest.

  Args:
    config: A frozen dataclass, changed in place.
    choice: The setting that chooses.
    table: The settings of each choice by their short names.
    full_name_fn: Maps a choice and a short name to the name of the setting.

  Raises:
    ValueError: If a setting is given of what is not chosen.
  """
  chosen = getattr(config, choice)
  names = {
      (owner, full_name_fn(owner, short)): own
      for owner, settings in table.items()
      for short, own in settings.items()
  }
  for (owner, name), own in names.items():
    if owner == chosen:
      fill_setting(config, name, own.default)
    elif (chosen, name) not in names and getattr(config, name) is not None:
      raise ValueError(
          f'{name} is a setting of {owner} and would be ignored: {choice} is '
          f'{chosen!r}.'
      )


def typed(name: str, value: Any, kind: type) -> Value:
  """Returns a value as `bool`, `int`, `float`, `str`, or raises ValueError."""
  if kind is bool and (isinstance(value, bool) or _is_numpy_bool(value)):
    return bool(value)
  if kind is int and isinstance(value, numbers.Integral):
    if not isinstance(value, bool):
      return operator.index(value)
  if kind is float and isinstance(value, numbers.Real):
    if not isinstance(value, bool):
      return float(value)
  if kind is str and isinstance(value, (str, os.PathLike)):
    return str(value)
  article = {bool: 'true or false', int: 'a whole number', float: 'a number'}
  raise ValueError(
      f'{name} must be {article.get(kind, "a text")}, found {value!r}.'
  )


def _is_numpy_bool(value: Any) -> bool:
  return type(value).__name__ in ('bool_', 'bool') and hasattr(value, 'dtype')


def _check_rules(field: dataclasses.Field, value: Value) -> None:
  rules = field.metadata
  found = f'found {value!r}.'
  if rules['choices'] and value not in rules['choices']:
    raise ValueError(
        f'{field.name} must be one of {", ".join(rules["choices"])}; {found}'
    )
  if isinstance(value, str) and not value.strip() and field.default != '':
    raise ValueError(f'{field.name} must not be empty, {found}')
  if isinstance(value, float) and not math.isfinite(value):
    raise ValueError(f'{field.name} must be finite, {found}')
  if rules['minimum'] is not None and value < rules['minimum']:
    raise ValueError(
        f'{field.name} must be at least {rules["minimum"]}, {found}'
    )
  if rules['above'] is not None and value <= rules['above']:
    raise ValueError(
        f'{field.name} must be greater than {rules["above"]}, {found}'
    )
  if rules['below'] is not None and value >= rules['below']:
    raise ValueError(
        f'{field.name} must be less than {rules["below"]}, {found}'
    )
