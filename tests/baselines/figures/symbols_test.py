"""What can be drawn is what runs record."""

from baselines.algorithms import registry
from baselines.experiment import records
from baselines.figures import symbols


def test_quantities_are_columns_of_metrics():
  columns = {*records.TRAINING_COLUMNS, *records.EVALUATION_COLUMNS}
  assert set(symbols.QUANTITIES) <= columns


def test_symbols_are_complete_mathematics():
  texts = [*symbols.SYMBOLS.values(), *symbols.QUANTITIES.values()]
  assert all(text.count('$') in (0, 2) for text in texts)


def test_algorithms_are_those_with_a_horizon():
  entries = registry.ALGORITHMS.items()
  assert set(symbols.ALGORITHMS) == {n for n, e in entries if e.has_horizon}
