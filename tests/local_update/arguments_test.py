"""Checks of arguments: what passes and what each error says."""

import numpy as np
import pytest

from tff_localupdate import arguments


@pytest.mark.parametrize('value', [0, 0.0, 1e-300, 5, np.float32(0.5)])
def test_check_not_negative_accepts(value):
  arguments.check_not_negative('rate', value)


@pytest.mark.parametrize(
    'value', [-1e-9, float('nan'), float('inf'), True, None, '1', 1j]
)
def test_check_not_negative_refuses(value):
  with pytest.raises(ValueError, match='rate must be a finite number that is'):
    arguments.check_not_negative('rate', value)


@pytest.mark.parametrize('value', [0.0, -1.0, float('nan')])
def test_check_positive_refuses(value):
  with pytest.raises(ValueError, match=f'eps must be .* found {value}'):
    arguments.check_positive('eps', value)


@pytest.mark.parametrize('value', [1.0, -0.1, float('nan'), None])
def test_check_decay_refuses(value):
  with pytest.raises(ValueError, match=r'beta must be a number in \[0, 1\)'):
    arguments.check_decay('beta', value)


@pytest.mark.parametrize('value', [1, np.int64(3)])
def test_check_count_accepts(value):
  arguments.check_count('batch_size', value)


@pytest.mark.parametrize('value', [0, -1, 1.0, True, None])
def test_check_count_refuses(value):
  with pytest.raises(ValueError, match=f'whole number .* found {value}'):
    arguments.check_count('batch_size', value)


def test_check_choice_names_the_choices():
  with pytest.raises(ValueError, match="kind must be one of a, b, found 'c'"):
    arguments.check_choice('kind', 'c', ('a', 'b'))


def test_check_type_names_both_types():
  with pytest.raises(TypeError, match="x must be of type int, found 'a' of"):
    arguments.check_type('x', 'a', int)


@pytest.mark.parametrize('dtype', ['float64', float, np.float64])
def test_checked_dtype_gives_the_name(dtype):
  assert arguments.checked_dtype(dtype) == 'float64'


@pytest.mark.parametrize('dtype', ['float16', 'int32', 'no_dtype'])
def test_checked_dtype_refuses(dtype):
  with pytest.raises(ValueError, match=f"dtype must be .* found '{dtype}'"):
    arguments.checked_dtype(dtype)
