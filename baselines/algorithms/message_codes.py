"""Codes of messages by their names in settings."""

from typing import Optional

from tff_localupdate.compression import codes
from tff_localupdate.compression import elias_codes


def build_code(
    name: str, levels: Optional[int] = None, *, signed: bool = True
) -> codes.Code:
  """Returns a code.

  Args:
    name: `fixed_width`, `signed_unary`, `elias_gamma` or `run_length`.
    levels: The largest magnitude, for `fixed_width`.
    signed: Whether integers may be negative, for `fixed_width`.
  """
  if name == 'fixed_width':
    return codes.FixedWidthCode(levels, signed=signed)
  if name == 'signed_unary':
    return codes.SignedUnaryCode()
  if name == 'elias_gamma':
    return elias_codes.EliasGammaCode()
  if name == 'run_length':
    return elias_codes.RunLengthCode()
  raise ValueError(
      'name must be fixed_width, signed_unary, elias_gamma or run_length, '
      f'found {name!r}.'
  )
