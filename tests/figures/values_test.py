"""Values of options, and what is said of wrong ones."""

import argparse
from fractions import Fraction

import pytest

from baselines.figures import values

_COUNT = values.whole(1, 100)


@pytest.mark.parametrize('read, text, expected', [
    (values.positive, '1e-20', 1e-20),
    (values.not_negative, '0', 0.0),
    (values.finite, '-2.5', -2.5),
    (_COUNT, '100', 100),
    (values.rational, '0.1', Fraction(1, 10)),
    (values.rational, '11/10', Fraction(11, 10)),
    (values.rational, '1e-3', Fraction(1, 1000)),
    (values.rational, '2.', Fraction(2)),
    (values.list_of(_COUNT), '1,20', (1, 20)),
])
def test_read(read, text, expected):
  assert read(text) == expected


@pytest.mark.parametrize('read, text, rule', [
    (values.positive, '0', 'above 0'),
    (values.positive, '-1', 'above 0'),
    (values.positive, 'nan', 'above 0'),
    (values.positive, '1e21', 'from 1e-20 to 1e20'),
    (values.not_negative, 'inf', 'from 0 to 1e20'),
    (values.not_negative, 'x', 'from 0 to 1e20'),
    (values.finite, 'nan', 'from -1e20'),
    (_COUNT, '0', 'a whole number from 1 to 100'),
    (_COUNT, '101', 'a whole number from 1 to 100'),
    (_COUNT, '2.5', 'a whole number from 1 to 100'),
    (values.rational, '-0.1', 'not negative'),
    (values.rational, '1/0', 'a quotient'),
    (values.rational, '1/00', 'a quotient'),
    (values.rational, '1e-400000000', 'a quotient'),
    (values.rational, 'nan', 'a quotient'),
    (values.list_of(_COUNT), '1,,2', 'a whole number'),
    (values.list_of(_COUNT), '1,2,1', 'without repetitions'),
])
def test_refused(read, text, rule):
  with pytest.raises(argparse.ArgumentTypeError, match='must be ') as caught:
    read(text)
  assert rule in str(caught.value) and 'found' in str(caught.value)
