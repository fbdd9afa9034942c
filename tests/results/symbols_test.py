"""What can be drawn is what runs record; numbers are read as they are meant."""

import pytest

from baselines.results import records
from baselines.results import symbols
from baselines.settings import algorithms


def test_quantities_are_columns_of_metrics():
  columns = {*records.TRAINING_COLUMNS, *records.EVALUATION_COLUMNS}
  assert set(symbols.QUANTITIES) <= columns


def test_symbols_are_complete_mathematics():
  texts = [*symbols.SYMBOLS.values(), *symbols.QUANTITIES.values()]
  assert all(text.count('$') in (0, 2) for text in texts)


def test_algorithms_are_those_with_a_horizon():
  entries = algorithms.ALGORITHMS.items()
  assert set(symbols.ALGORITHMS) == {n for n, e in entries if e.has_horizon}


@pytest.mark.parametrize('value, digits, text', [
    (0.0, 6, '0'), (0.1, 6, '0.1'), (10**-1.5, 4, '0.03162'),
    (10**-1.5, 6, '0.0316228'), (100.0, 4, '100'), (1e4, 4, '10000'),
    (12345.6, 4, '12350'), (12345.6, 6, '12345.6'), (1e5, 3, '100000'),
    (1e6, 4, '1e6'), (1e6, 12, '1000000'), (2.5e7, 4, '2.5e7'),
    (1e-5, 4, '1e-5'), (3.16227766e-5, 4, '3.162e-5'), (0.0001, 4, '0.0001'),
    (500, 6, '500'), (-1e-7, 6, '-1e-7'),
])
def test_numbers_have_no_noughts_in_their_exponents(value, digits, text):
  assert symbols.number_text(value, digits) == text
  assert float(text) == pytest.approx(value, rel=1e-3)


def test_exponents_are_no_sums_in_formulas():
  assert symbols.in_formula('0.01') == '0.01'
  assert symbols.in_formula('1e6') == r'1\mathrm{e}6'
  assert symbols.in_formula('3.162e-5') == r'3.162\mathrm{e}{-}5'
