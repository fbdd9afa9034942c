"""Settings check types and rules, and say what is wrong."""

import dataclasses
from typing import Optional

import numpy as np
import pytest

from baselines.settings import schema
from baselines.settings.schema import setting


@dataclasses.dataclass(frozen=True)
class _Example:
  count: int = setting(1, 'A number.', minimum=1)
  rate: float = setting(0.5, 'A rate.', above=0.0, below=1.0)
  word: str = setting('a', 'A word.', choices=('a', 'b'))
  flag: bool = setting(True, 'A switch.')
  late: Optional[float] = setting(None, 'Depends.', minimum=0.0)

  def __post_init__(self):
    schema.check_settings(self)


def test_numbers_of_other_types_become_python_numbers():
  example = _Example(
      count=np.int64(3), rate=np.float32(0.5), flag=np.bool_(False), late=0
  )
  assert (example.count, example.rate, example.late) == (3, 0.5, 0.0)
  kinds = [type(v) for v in dataclasses.astuple(example)]
  assert kinds == [int, float, str, bool, float]


def test_settings_equal_in_value_are_equal_whatever_their_type():
  assert _Example(count=np.int32(2)) == _Example(count=2)
  assert hash(_Example(rate=np.float64(0.25))) == hash(_Example(rate=0.25))


@pytest.mark.parametrize('wrong, message', [
    ({'count': 0}, 'count must be at least 1, found 0'),
    ({'count': 1.5}, 'count must be a whole number, found 1.5'),
    ({'count': True}, 'count must be a whole number, found True'),
    ({'rate': 0.0}, 'rate must be greater than 0.0, found 0.0'),
    ({'rate': 1.0}, 'rate must be less than 1.0, found 1.0'),
    ({'rate': float('nan')}, 'rate must be finite, found nan'),
    ({'rate': float('inf')}, 'rate must be finite, found inf'),
    ({'rate': 'x'}, "rate must be a number, found 'x'"),
    ({'rate': None}, 'rate must be a number, found None'),
    ({'word': 'c'}, "word must be one of a, b; found 'c'"),
    ({'word': 1}, 'word must be a text, found 1'),
    ({'flag': 1}, 'flag must be true or false, found 1'),
    ({'late': -1}, 'late must be at least 0.0, found -1.0'),
])
def test_refused(wrong, message):
  with pytest.raises(ValueError, match=message):
    _Example(**wrong)


def test_value_type_sees_through_optional():
  kinds = [schema.value_type(f) for f in dataclasses.fields(_Example)]
  assert kinds == [int, float, str, bool, float]


def test_fill_setting_keeps_a_value_that_is_there():
  example = _Example()
  schema.fill_setting(example, 'late', 2.0)
  schema.fill_setting(example, 'late', 3.0)
  assert example.late == 2.0
