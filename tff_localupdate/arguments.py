"""Checks of arguments: each error names the argument, the rule, the value."""

import math
import numbers
from typing import Any

import numpy as np

FLOAT_DTYPES = ('float32', 'float64')


def check_type(name: str, value: Any, expected: type) -> None:
  """Raises TypeError unless `value` is an instance of `expected`."""
  if not isinstance(value, expected):
    raise TypeError(
        f'{name} must be of type {expected.__name__}, found {value!r} of type '
        f'{type(value).__name__}.'
    )


def check_not_negative(name: str, value: Any) -> None:
  """Raises ValueError unless `value` is a finite number >= 0."""
  if not _is_finite_number(value) or value < 0.0:
    raise ValueError(
        f'{name} must be a finite number that is not negative, found {value!r}.'
    )


def check_positive(name: str, value: Any) -> None:
  """Raises ValueError unless `value` is a finite number > 0."""
  if not _is_finite_number(value) or value <= 0.0:
    raise ValueError(
        f'{name} must be a finite number above 0, found {value!r}.'
    )


def check_decay(name: str, value: Any) -> None:
  """Raises ValueError unless `value` is a number in [0, 1)."""
  if not _is_finite_number(value) or not 0.0 <= value < 1.0:
    raise ValueError(f'{name} must be a number in [0, 1), found {value!r}.')


def check_count(name: str, value: Any) -> None:
  """Raises ValueError unless `value` is a whole number >= 1."""
  is_whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
  if not is_whole or value < 1:
    raise ValueError(
        f'{name} must be a whole number that is at least 1, found {value!r}.'
    )


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
  """Raises ValueError unless `value` is one of `choices`."""
  if value not in choices:
    raise ValueError(
        f'{name} must be one of {", ".join(choices)}, found {value!r}.'
    )


def checked_dtype(dtype: Any) -> str:
  """Returns `dtype` by its name; ValueError unless float32 or float64."""
  try:
    name = np.dtype(dtype).name
  except TypeError:
    name = str(dtype)
  check_choice('dtype', name, FLOAT_DTYPES)
  return name


def _is_finite_number(value: Any) -> bool:
  return (
      isinstance(value, numbers.Real)
      and not isinstance(value, bool)
      and math.isfinite(value)
  )
