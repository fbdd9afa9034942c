"""Cumulative regret against time or bits, a line per algorithm (paper 2)."""

from collections.abc import Sequence
import pathlib

import numpy as np
import pandas as pd

from baselines.figures import horizon_runs
from baselines.figures import style

_REGRET = 'cumulative_regret_mean'
_SPREAD = 'cumulative_regret_sd'
_BITS = 'cumulative_uplink_bits_mean'
_DENSE_POINTS = 500


def draw_against_time(
    curves: pd.DataFrame, caption: str, output: pathlib.Path, *, log_scale: bool
) -> None:
  """Draws the regret against time: means in bands of one standard deviation.

  Args:
    curves: What `regret_curves.curve_table` returns.
    caption: What is drawn.
    output: Where to; the ending says the format.
    log_scale: Whether the vertical axis is logarithmic.
  """
  with style.context():
    figure = style.new_figure()
    axes = figure.add_subplot()
    for name, curve, look in _lines(curves):
      shown = _dense(curve) if log_scale else curve
      axes.plot(
          shown.time_used, shown[_REGRET], label=name,
          markevery=style.mark_every(len(shown)), **look,
      )
      style.draw_band(
          axes, shown.time_used, shown[_REGRET] - shown[_SPREAD],
          shown[_REGRET] + shown[_SPREAD], look['color'],
      )
    axes.set_xlabel(r'time $t$ (queries of each client)')
    _finish(figure, axes, log_scale)
    style.add_caption(figure, caption)
    style.save(figure, output)


def draw_against_bits(
    curves: pd.DataFrame, caption: str, output: pathlib.Path, *, log_scale: bool
) -> None:
  """Draws the mean regret against the mean of the bits that a client sent.

  A line is a staircase: the regret grows during an exchange, the bits at its
  end. Its last point, the regret and the bits at the horizon, is marked.

  Args:
    curves: What `regret_curves.curve_table` returns.
    caption: What is drawn.
    output: Where to; the ending says the format.
    log_scale: Whether the vertical axis is logarithmic.

  Raises:
    ValueError: If no run has sent anything.
  """
  sent = curves[curves[_BITS] > 0]
  if sent.empty:
    raise ValueError('runs must have sent bits, found none that has.')
  with style.context():
    figure = style.new_figure()
    axes = figure.add_subplot()
    for name, curve, look in _lines(sent):
      axes.plot(
          curve[_BITS], curve[_REGRET], drawstyle='steps-pre', label=name,
          markevery=[-1], **{'marker': 'o', **look},
      )
    axes.set_xlabel('uplink bits of a client so far')
    axes.set_xscale('log')
    _finish(figure, axes, log_scale)
    style.add_caption(figure, caption)
    style.save(figure, output)


def caption_against_time(groups: Sequence[horizon_runs.RunGroup]) -> str:
  """Says what is drawn against time."""
  spread = any(len(group.runs) > 1 for group in groups)
  return '; '.join([
      *horizon_runs.describe(groups),
      *(['band: one standard deviation'] if spread else []),
      'linear between exchanges',
  ])


def caption_against_bits(groups: Sequence[horizon_runs.RunGroup]) -> str:
  """Says what is drawn against bits."""
  return '; '.join([
      *horizon_runs.describe(groups),
      'at each time, mean regret against mean bits; dot: at T',
      *_codes(groups),
  ])


def _codes(groups: Sequence[horizon_runs.RunGroup]) -> list[str]:
  """Returns the code of each group that has one, once if many share it."""
  codes = [g.settings['code'] for g in groups if 'code' in g.settings]
  if len(codes) > style.MAX_UNMARKED and len(set(codes)) == 1:
    return [f'code: {codes[0]}']
  texts = [
      f'{name} {group.settings["code"]}'
      for group, name in zip(groups, horizon_runs.name_groups(groups, ['code']))
      if 'code' in group.settings
  ]
  return [f'codes: {", ".join(texts)}'] if texts else []


def _lines(curves: pd.DataFrame):
  """Yields name, curve and look of each line, in the order of the table."""
  names = curves.algorithm.unique()
  for name, look in zip(names, style.looks(len(names))):
    yield name, curves[curves.algorithm == name], look


def _dense(curve: pd.DataFrame) -> pd.DataFrame:
  """Returns times after 0 so near to each other that what is linear bends.

  Between points a logarithmic axis would have other straight lines.
  """
  grid = np.linspace(0.0, curve.time_used.max(), _DENSE_POINTS + 1)[1:]
  times = np.union1d(grid, curve.time_used[1:])
  return pd.DataFrame({
      'time_used': times,
      **{
          name: np.interp(times, curve.time_used, curve[name])
          for name in (_REGRET, _SPREAD)
      },
  })


def _finish(figure, axes, log_scale: bool) -> None:
  axes.set_ylabel(r'cumulative regret $R(t)$')
  axes.set_yscale('log' if log_scale else 'linear')
  style.add_legend(figure, axes)
