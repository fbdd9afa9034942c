"""The papers' symbols of settings and quantities, and texts of numbers."""

from collections.abc import Callable, Sequence
import re
from typing import Any

SYMBOLS = {
    'client_learning_rate': r'$\gamma$',
    'server_learning_rate': r'$\eta$',
    'theta': r'$\Theta$',
    'server_optimizer': 'server',
}
# Columns of metrics.csv that can be drawn against rounds.
QUANTITIES = {
    'population_loss': r'population loss $f(x_t)$',
    'example_weighted_loss': 'loss over all examples',
    'loss_before_training': r'loss before training $f_t$',
    'update_norm': r'norm of the update $\|q_t\|$',
    'test_loss': 'test loss',
    'test_accuracy': 'test accuracy',
}
# Algorithms with a horizon, in the order in which paper 2 lists them.
ALGORITHMS = {
    'minibatch_sgd': 'Minibatch-SGD',
    'fed_avg': 'FedAvg',
    'fed_paq': 'FedPAQ',
    'fed_com': 'FedCOM',
    'ceal': 'CEAL',
}
# Of LocalUpdate and its relatives, to any horizon.
_OTHER_ALGORITHMS = {
    'local_update': 'LocalUpdate', 'epochs': 'FedAvg (epochs)',
    'k_maml': 'K-MAML',
}
# Numbers below 10 to this power are written in full.
_POWER_IN_FULL = 6


# Of the numbers in names: more where fewer do not tell all of them apart.
DIGITS = (6, 12, 17)


def algorithm_text(name: str) -> str:
  """Returns the name of an algorithm as the papers write it."""
  return {**ALGORITHMS, **_OTHER_ALGORITHMS}.get(name, name)


def algorithm_place(name: str) -> tuple[int, str]:
  """Returns what sorts algorithms as paper 2 lists them, others before."""
  names = list(ALGORITHMS)
  return (names.index(name), '') if name in names else (-1, name)


def distinct(
    names_of: Callable[[int], list[Any]], digits: Sequence[int] = DIGITS
) -> list[Any]:
  """Returns names with the fewest digits by which all of them differ.

  Those with the first number of digits if none is enough.
  """
  for number in digits:
    names = names_of(number)
    if len(set(names)) == len(names):
      return names
  return names_of(digits[0])


def number_text(value: float, digits: int = 6) -> str:
  """Returns a number as text: 0.0316, 10000, 1e6, 1e-5.

  Zeros at the end of the digits kept are dropped.
  """
  text = f'{value:.{digits}g}'
  mantissa, _, exponent = text.partition('e')
  if not exponent:
    return text
  if 0 <= int(exponent) < _POWER_IN_FULL:
    return f'{float(text):.0f}'
  return f'{mantissa}e{int(exponent)}'


def in_formula(number: str) -> str:
  """Returns a number for a formula, where 1e-5 would be read as 1 e minus 5."""
  return re.sub('e(?=[-0-9])', r'\\mathrm{e}', number).replace('-', '{-}')
