"""Values of options: each function is a `type` for argparse.

They refuse what is wrong with the rule and the text found; argparse puts the
option's name in front.
"""

import argparse
import fractions
import math
import re
from typing import Callable, TypeVar

_Value = TypeVar('_Value')

# Between these, squares and quotients of what the theory asks for are finite.
_LARGEST = 1e20
_SMALLEST = 1e-20
# Short decimals and quotients: an exact 1e-400000000 would fill the memory.
_RATIONAL = re.compile(r'\d{1,18}(\.\d{0,18})?(e[+-]?\d\d?)?|\d{1,18}/\d{1,18}')


def positive(text: str) -> float:
  """Reads a number from 1e-20 to 1e20."""
  value = _number(text)
  if not _SMALLEST <= value <= _LARGEST:
    raise _refusal('a number above 0, from 1e-20 to 1e20', text)
  return value


def not_negative(text: str) -> float:
  """Reads a number from 0 to 1e20."""
  value = _number(text)
  if not 0.0 <= value <= _LARGEST:
    raise _refusal('a number from 0 to 1e20', text)
  return value


def finite(text: str) -> float:
  """Reads a number from -1e20 to 1e20."""
  value = _number(text)
  if not abs(value) <= _LARGEST:
    raise _refusal('a number from -1e20 to 1e20', text)
  return value


def whole(minimum: int, maximum: int) -> Callable[[str], int]:
  """Returns a function that reads a whole number in this range."""

  def whole_number(text: str) -> int:
    try:
      value = int(text)
    except ValueError:
      value = None
    if value is None or not minimum <= value <= maximum:
      raise _refusal(f'a whole number from {minimum} to {maximum}', text)
    return value

  return whole_number


def rational(text: str) -> fractions.Fraction:
  """Reads a number that is not negative exactly: `0.25`, `1/4`, `1e-3`."""
  found = text.strip().lower()
  if not _RATIONAL.fullmatch(found) or found.endswith('/0'):
    raise _refusal('a decimal number or a quotient, not negative', text)
  try:
    return fractions.Fraction(found)
  except (ValueError, ZeroDivisionError) as error:
    raise _refusal('a decimal number or a quotient', text) from error


def list_of(
    read: Callable[[str], _Value],
) -> Callable[[str], tuple[_Value, ...]]:
  """Returns a function that reads values separated by commas, all different."""

  def values(text: str) -> tuple[_Value, ...]:
    found = tuple(read(part) for part in text.split(','))
    if len(set(found)) < len(found):
      raise _refusal('a list without repetitions', text)
    return found

  return values


def _number(text: str) -> float:
  try:
    return float(text)
  except ValueError:
    return math.nan


def _refusal(rule: str, text: str) -> argparse.ArgumentTypeError:
  return argparse.ArgumentTypeError(f'must be {rule}, found {text!r}')
