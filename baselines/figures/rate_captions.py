"""What is said of runs by their rates: names of lines, and captions."""

from collections.abc import Iterable, Mapping, Sequence
import re
from typing import Any

from baselines.figures import horizon_runs
from baselines.figures import rate_runs
from baselines.figures import symbols

# What captions say of the experiment, in this order.
_SETUP = {
    'clients_per_round': '$M$',
    'batch_size': '$B$',
    'theta': r'$\Theta$',
    'server_optimizer': 'server',
}
# What it says of an algorithm only where that is not as usual; of what is not
# here, always.
_USUAL = {
    'algorithm': 'local_update',
    'loss_before_training': 'drawn',
    'uplink_quantizer': 'none',
    'client_optimizer': 'sgd',
    'proximal_strength': 0.0,
    'server_momentum': 0.0,
    'client_schedule': 'constant',
    'server_schedule': 'constant',
    'client_sampling': 'without_replacement',
    'initial_point': 'model',
    'dtype': 'float32',
}
_DIGITS = 4
# And of LocalUpdateDecay.
_DECAY = {
    'window': '$W$',
    'patience': '$P$',
    'cooldown': '$C$',
    'min_improvement': r'$\Delta$',
    'client_decay': r'$\alpha$',
    'server_decay': r'$\beta$',
}


def name_lines(
    groups: Sequence[rate_runs.RateGroup], *, shows_eta: bool = False
) -> list[str]:
  """Returns the names of lines: gamma, and what else tells groups apart.

  LocalUpdateDecay is named as such, with the rates that it starts from.

  Args:
    groups: The groups that are drawn.
    shows_eta: Whether eta is named even if it is the same in all.
  """
  constant = [group for group in groups if not group.decays]
  is_diagonal = len(constant) > 1 and all(
      group.client_learning_rate == group.server_learning_rate
      for group in constant
  )
  shows_eta = (
      shows_eta or len({group.server_learning_rate for group in groups}) > 1
  )

  def name_line(group, digits):
    alike = [other for other in groups if other.decays == group.decays]
    is_short = is_diagonal and not group.decays
    parts = [_rates_text(group, shows_eta, is_short, digits)]
    parts += [
        horizon_runs.setting_text(name, group.settings[name], digits)
        for name in horizon_runs.varied_settings(alike, rate_runs.RATES)
        if name in group.settings
    ]
    return ', '.join(parts)

  return symbols.distinct(
      lambda digits: [name_line(group, digits) for group in groups],
      (_DIGITS, *symbols.DIGITS),
  )


def describe(groups: Sequence[rate_runs.RateGroup]) -> list[str]:
  """Returns what a caption says of runs: task, setup, rounds, seeds, misses.

  Args:
    groups: All that were looked at, those included that are not drawn.
  """
  runs = [run for group in groups for run in group.all_runs]
  parts = list(dict.fromkeys(group.task for group in groups))
  settings = [group.settings for group in groups]
  parts.append(_numbers_text(settings, _SETUP))
  parts += _describe_unusual(groups)
  etas = {group.server_learning_rate for group in groups}
  if len(etas) == 1:
    eta = symbols.number_text(min(etas))
    parts.append(f'{_symbol("server_learning_rate")} = {eta}')
  plural = '' if len(runs) == 1 else 's'
  parts.append(
      f'{len(runs)} run{plural} of {_values_text(settings, "rounds")} rounds'
  )
  seeds = _values_text((run.settings for run in runs), 'sampling_seed')
  parts.append(f'sampling seed {seeds}')
  diverged = [group for group in groups if group.num_diverged]
  parts.append(f'{sum(g.num_diverged for g in diverged)} diverged, not drawn')
  unfinished = sum(group.num_unfinished for group in groups)
  if unfinished:
    parts.append(f'{unfinished} not finished')
  return parts


def describe_decay(groups: Sequence[rate_runs.RateGroup]) -> list[str]:
  """Returns a part that says how rates decay, if any of the groups' do."""
  settings = [group.settings for group in groups if group.decays]
  if not settings:
    return []
  rule = _values_text(settings, 'decay_rule')
  numbers = _numbers_text(settings, _DECAY)
  return [f'decay: LocalUpdateDecay from these rates ({rule}: {numbers})']


def describe_rule(
    groups: Sequence[rate_runs.RateGroup], rule: rate_runs.Rule
) -> str:
  """Returns how the best eta was found among `groups`."""
  constant = [group for group in groups if not group.decays] or list(groups)
  if len({group.family for group in constant}) == len(constant):
    return 'one {} for each {}, found before'.format(
        *map(_symbol, reversed(rate_runs.RATES))
    )
  counts = sorted({rule.num_rounds(group) for group in constant})
  last = ' or '.join(map(str, counts))
  rounds = 'round' if last == '1' else f'{last} rounds'
  etas = sorted({group.server_learning_rate for group in constant})
  return (
      f'{_symbol("server_learning_rate")} of each '
      f'{_symbol("client_learning_rate")}: that with the smallest mean '
      f'{rule.quantity} in the last {rounds}, of '
      f'{", ".join(symbols.number_text(eta, 3) for eta in etas)}'
  )


def describe_lost(
    groups: Sequence[rate_runs.RateGroup],
    shown: Sequence[rate_runs.RateGroup],
) -> list[str]:
  """Returns a part that names the gammas of which nothing is shown, if any."""
  seen = {group.client_learning_rate for group in shown if not group.decays}
  lost = sorted({
      group.client_learning_rate for group in groups if not group.decays
  } - seen)
  if not lost:
    return []
  symbol = _symbol('client_learning_rate')
  gammas = ', '.join(map(symbols.number_text, lost))
  return [f'nothing to draw of {symbol} = {gammas}']


def rate_text(value: float) -> str:
  """Returns a rate to four digits."""
  return symbols.number_text(value, _DIGITS)


def plain_text(text: str) -> str:
  """Returns a name or a caption without its marks of formulas."""
  return re.sub(r'\\mathrm|[$\\{}]', '', text)


def _rates_text(
    group: rate_runs.RateGroup,
    shows_eta: bool,
    is_diagonal: bool,
    digits: int,
) -> str:
  # One formula: legends are laid out by the letters of their texts.
  gamma, eta = (_symbol(name).strip('$') for name in rate_runs.RATES)
  rates = (group.client_learning_rate, group.server_learning_rate)
  value, other = (
      symbols.in_formula(symbols.number_text(rate, digits)) for rate in rates
  )
  text = f'{gamma}={eta}={value}' if is_diagonal else f'{gamma}={value}'
  if shows_eta and not is_diagonal:
    text += f', {eta}={other}'
  return f'decay: ${text}$' if group.decays else f'${text}$'


def _numbers_text(
    settings: Sequence[Mapping[str, Any]], names: Mapping[str, str]
) -> str:
  """Returns the symbols and values of those settings that there are."""
  return ', '.join(
      f'{symbol} {_values_text(settings, name)}'
      for name, symbol in names.items()
      if any(name in values for values in settings)
  )


def _describe_unusual(groups: Sequence[rate_runs.RateGroup]) -> list[str]:
  """Returns the settings that are not as usual, with their values."""
  told = {*_SETUP, *_DECAY, *rate_runs.RATES, 'decay_rule'}
  found: dict[str, dict[str, None]] = {}
  for group in groups:
    run = group.all_runs[0]
    names = {*run.components['algorithm'], *_USUAL}
    if not group.decays:
      names |= set(run.components.get('rate', {}))
    for name in sorted(names - told):
      value = run.settings.get(name)
      if value is not None and value != _USUAL.get(name):
        text = horizon_runs.setting_text(name, value).partition(' ')[2]
        found.setdefault(name, {})[text] = None
  return [f'{name} {" or ".join(texts)}' for name, texts in found.items()]


def _values_text(settings: Iterable[Mapping[str, Any]], name: str) -> str:
  found = {values[name] for values in settings if name in values}
  return ' or '.join(map(str, sorted(found)))


def _symbol(name: str) -> str:
  return symbols.SYMBOLS[name]
