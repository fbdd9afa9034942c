"""Theta weights of LocalUpdate (Charles and Konecny 2020, section 2).

Theta = (theta_1, theta_2, ...) says how much of the gradient at each local
step a client sends: q = sum_k theta_k g_k. It is a plain value, free of
TensorFlow, so that planning code can read and check it in no time.
"""

import dataclasses
import math
import numbers

# A guard against a slip such as "1:1000000000", which would fill the memory
# with weights before anything else could object.
MAX_STEPS = 1_000_000


@dataclasses.dataclass(frozen=True)
class Theta:
  """A finite sequence of weights theta_k >= 0, the last of them positive.

  `weights` are theta_1, ..., theta_K as floats. Trailing zeros are dropped, so
  `len(weights)` is K(Theta). Raises ValueError if a weight is negative or no
  finite number, or if none is positive.
  """

  weights: tuple[float, ...]

  def __post_init__(self) -> None:
    weights = [_checked_weight(w, k) for k, w in enumerate(self.weights, 1)]
    while weights and weights[-1] == 0.0:
      weights.pop()
    if not weights:
      raise ValueError(
          'theta must have at least one positive weight, found '
          f'{tuple(self.weights)!r}.'
      )
    object.__setattr__(self, 'weights', tuple(weights))

  @classmethod
  def single(cls, num_steps: int) -> 'Theta':
    """Returns Theta_K = (0, ..., 0, 1) of K entries: first-order MAML."""
    _check_num_steps(num_steps)
    return cls((0.0,) * (num_steps - 1) + (1.0,))

  @classmethod
  def ones(cls, num_steps: int) -> 'Theta':
    """Returns Theta_{1:K} = (1, ..., 1) of K entries: FedAvg and Reptile."""
    _check_num_steps(num_steps)
    return cls((1.0,) * num_steps)

  @property
  def num_steps(self) -> int:
    """K(Theta), the number of local steps: the largest k with theta_k > 0."""
    return len(self.weights)

  @property
  def sum(self) -> float:
    """The sum of all weights."""
    return math.fsum(self.weights)

  def __str__(self) -> str:
    """The canonical text, which `parse_theta` reads back to an equal value."""
    if self == Theta.ones(self.num_steps):
      return f'1:{self.num_steps}'
    if self == Theta.single(self.num_steps):
      return f'k{self.num_steps}'
    # A lone weight is written with a step that does not count.
    weights = self.weights if self.num_steps > 1 else (*self.weights, 0.0)
    return ','.join(
        str(int(w)) if w.is_integer() else repr(w) for w in weights
    )


def parse_theta(text: str) -> Theta:
  """Reads Theta weights from a text, such as `1:10`, `k10` or `0.5,0,2`.

  `1:K` is Theta_{1:K} (K weights of 1), `kK` is Theta_K (weight 1 on step K
  only); else the weights themselves, separated by commas. Zeros at the end do
  not count, but a weight alone is refused, as `10` may be meant as ten steps:
  one step of weight 10 is `10,0`.

  Raises ValueError for any other text, and for weights that `Theta` refuses.
  """
  stripped = text.strip()
  if stripped.startswith('k'):
    return Theta.single(_parse_num_steps(stripped[1:], text))
  if ':' in stripped:
    start, _, stop = stripped.partition(':')
    if start.strip() != '1':
      raise ValueError(
          f"theta of the form '1:K' must start with '1:', found {text!r}."
      )
    return Theta.ones(_parse_num_steps(stop, text))
  parts = stripped.split(',')
  try:
    weights = tuple(map(float, parts))
  except ValueError as e:
    raise ValueError(
        "theta must be '1:K', 'kK' or weights separated by commas, found "
        f'{text!r}.'
    ) from e
  theta = Theta(weights)
  if len(parts) == 1 and theta != Theta.ones(1):
    raise ValueError(
        f'theta must not be one weight alone, found {text!r}: 1:K is K steps, '
        f'{stripped},0 one step of this weight.'
    )
  return theta


def _parse_num_steps(digits: str, text: str) -> int:
  try:
    num_steps = int(digits)
  except ValueError as e:
    raise ValueError(
        "theta of the form '1:K' or 'kK' must have a whole number K, found "
        f'{text!r}.'
    ) from e
  _check_num_steps(num_steps)
  return num_steps


def _check_num_steps(num_steps: int) -> None:
  if not 1 <= num_steps <= MAX_STEPS:
    raise ValueError(
        f'theta must have between 1 and {MAX_STEPS} steps, found {num_steps}.'
    )


def _checked_weight(weight: object, step: int) -> float:
  if isinstance(weight, bool) or not isinstance(weight, numbers.Real):
    raise ValueError(
        f'theta weight {step} must be a number, found {weight!r}.'
    )
  value = float(weight)
  if not math.isfinite(value) or value < 0.0:
    raise ValueError(
        f'theta weight {step} must be finite and not negative, found {value}.'
    )
  return value
