"""What figures and tables say of runs: names of lines, and captions."""

from collections.abc import Collection, Iterable, Mapping, Sequence
import re
from typing import Any

from baselines.results import groups as groups_lib
from baselines.results import ranking
from baselines.results import runs as runs_lib
from baselines.results import symbols

Group = groups_lib.Group
_DIGITS = 4
# What lines of any runs are told apart by, in the order of the legend; by other
# settings only where these are not enough.
_LABELLED = (
    'task',
    'model',
    'data_source',
    'algorithm',
    'server_optimizer',
    'theta',
    'client_learning_rate',
    'server_learning_rate',
    'step_size',
)
# What captions say of the experiment, in this order.
_SETUP = {
    'clients_per_round': '$M$',
    'batch_size': '$B$',
    'theta': r'$\Theta$',
    'server_optimizer': 'server',
}
# What they say of an algorithm only where it is not as usual; of settings that
# are not here, always.
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
# And of LocalUpdateDecay.
_DECAY = {
    'window': '$W$',
    'patience': '$P$',
    'cooldown': '$C$',
    'min_improvement': r'$\Delta$',
    'client_decay': r'$\alpha$',
    'server_decay': r'$\beta$',
}


def varied_settings(
    groups: Sequence[Any], ignored: Collection[str] = ()
) -> list[str]:
  """Returns the settings that some of the groups or runs differ in, sorted.

  A setting that a group does not have differs from all values.
  """
  names = {name for group in groups for name in group.settings}
  return sorted(
      name
      for name in names - set(ignored)
      if len({repr(group.settings.get(name)) for group in groups}) > 1
  )


def setting_text(
    name: str, value: Any, digits: int = symbols.DIGITS[0]
) -> str:
  """Returns a setting and its value as they are named in tables."""
  is_number = isinstance(value, float)
  return f'{name} {symbols.number_text(value, digits) if is_number else value}'


# ---- Lines of any runs, by all settings that vary.


def describe_any(runs: Sequence[runs_lib.Run]) -> list[str]:
  """Returns what a caption says of any runs: settings in common, how many."""
  varied = varied_settings(runs)
  parts = [
      _labelled_text(name, runs[0].settings[name])
      for name in _LABELLED
      if name in runs[0].settings and name not in varied
  ]
  seeds = sorted({run.settings['sampling_seed'] for run in runs})
  parts += [
      f'{len(runs)} runs',
      f'sampling seeds {", ".join(str(s) for s in seeds)}',
      f'{sum(run.diverged for run in runs)} diverged, not drawn',
  ]
  unfinished = sum(not run.finished and not run.diverged for run in runs)
  return parts + ([f'{unfinished} not finished'] if unfinished else [])


def order_any(
    groups: Sequence[Group], runs: Sequence[runs_lib.Run]
) -> list[Group]:
  """Returns groups in the order of a legend; `runs` are all of the figure."""
  names = [n for n in _LABELLED if n in varied_settings(runs)]

  def rank(group, name):  # None, numbers, texts.
    value = group.settings.get(name)
    is_number = isinstance(value, (int, float))
    return value is not None, value if is_number else 0.0, str(value)

  return sorted(groups, key=lambda g: [rank(g, name) for name in names])


def name_any(
    groups: Sequence[Group], runs: Sequence[runs_lib.Run]
) -> list[str]:
  """Returns names of lines by the labelled settings that vary among `runs`.

  Where two would be alike, all settings that vary are named.
  """
  names = [n for n in _LABELLED if n in varied_settings(runs)]

  def labels():
    return [
        ', '.join(
            _labelled_text(name, group.settings[name])
            for name in names
            if name in group.settings
        )
        for group in groups
    ]

  if len(set(labels())) < len(groups):
    names += varied_settings(groups, names)
  return labels()


def _labelled_text(name: str, value: Any) -> str:
  symbol = symbols.SYMBOLS.get(name, name)
  text = symbols.number_text(value) if isinstance(value, float) else str(value)
  return f'{symbol} = {text}' if symbol.startswith('$') else f'{name} {text}'


# ---- Lines of algorithms to a horizon (paper 2).


def name_algorithms(
    groups: Sequence[Group], ignored: Collection[str] = ()
) -> list[str]:
  """Returns the names of groups: the algorithm, and what else they differ in.

  Settings are named if groups of the same task and algorithm differ in them;
  those of the experiment also if groups of other algorithms do; not those in
  `ignored`, which a figure shows by other means.
  """
  tasks = [group.task for group in groups]  # Each has names of its own.

  def names(digits):
    return [_algorithm_name(g, groups, ignored, digits) for g in groups]

  named = symbols.distinct(lambda digits: list(zip(tasks, names(digits))))
  return [name for _, name in named]


def _algorithm_name(
    group: Group, groups: Sequence[Group], ignored: Collection[str], digits: int
) -> str:
  others = [g for g in groups if g.task == group.task]
  same = [g for g in others if g.algorithm == group.algorithm]
  varied = set(varied_settings(same, ignored))
  varied |= set(varied_settings(others, ignored)) & set(dict(group.experiment))
  return ', '.join([
      symbols.algorithm_text(group.algorithm),
      *(
          setting_text(name, group.settings[name], digits)
          for name in sorted(varied)
          if name in group.settings
      ),
  ])


def describe_algorithms(groups: Sequence[Group]) -> list[str]:
  """Returns what a caption says of the runs.

  That is the task, the horizon, how many runs there are and of which seeds, at
  which queries f was evaluated unless at all of them, and what is left out.
  """
  finished = [run for group in groups for run in group.runs]
  counts = sorted({len(group.runs) for group in groups if group.runs})
  parts = [f'task {task}' for task in dict.fromkeys(g.task for g in groups)]
  settings = [group.settings for group in groups]
  parts.append(f'T = {_values_text(settings, "horizon", ", ")}')
  each = '-'.join(str(n) for n in (counts[0], counts[-1])[: len(counts)])
  parts.append(f'mean of {each} run{"s" if counts[-1] > 1 else ""} each')
  seeds = {run.settings['sampling_seed'] for run in finished}
  parts.append(f'sampling seeds {_ranges_text(seeds)}')
  data_seeds = {run.settings.get('data_seed') for run in finished} - {None}
  if len(data_seeds) > 1:
    parts.append(f'data seeds {_ranges_text(data_seeds)}')
  if {values.get('regret_every') for values in settings} - {1, None}:
    every = _values_text(settings, 'regret_every')
    parts.append(
        f'f evaluated at the middle of every {every} queries of clients that '
        'move between queries'
    )
  for word in ('diverged', 'unfinished'):
    counts = [getattr(group, f'num_{word}') for group in groups]
    texts = [
        f'{count} of {len(group.all_runs)} {name}'
        for group, name, count in zip(groups, name_algorithms(groups), counts)
        if count
    ]
    if texts:
      parts.append(f'{word} and left out: {"; ".join(texts)}')
  return parts


def describe_tasks(groups: Sequence[Group]) -> list[str]:
  """Returns a sentence for each task, of what `describe_algorithms` says."""
  return [
      'Runs: '
      f'{"; ".join(describe_algorithms([g for g in groups if g.task == task]))}'
      '.'
      for task in dict.fromkeys(group.task for group in groups)
  ]


def _ranges_text(numbers: Collection[int]) -> str:
  """Returns whole numbers as text, neighbours as a range."""
  ranges: list[list[int]] = []
  for number in sorted(numbers):
    if ranges and number == ranges[-1][-1] + 1:
      ranges[-1].append(number)
    else:
      ranges.append([number])
  return ', '.join(
      f'{r[0]}-{r[-1]}' if len(r) > 1 else str(r[0]) for r in ranges
  )


# ---- Lines of gamma and eta (paper 1).


def name_rates(
    groups: Sequence[Group], *, shows_eta: bool = False
) -> list[str]:
  """Returns the names of lines: gamma, and whatever else groups differ in.

  LocalUpdateDecay is named as such, with the rates that it starts from. With
  `shows_eta`, eta is named even if it is the same in all.
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
        setting_text(name, group.settings[name], digits)
        for name in varied_settings(alike, groups_lib.RATES)
        if name in group.settings
    ]
    return ', '.join(parts)

  return symbols.distinct(
      lambda digits: [name_line(group, digits) for group in groups],
      (_DIGITS, *symbols.DIGITS),
  )


def describe_rates(groups: Sequence[Group]) -> list[str]:
  """Returns what a caption says of runs: task, setup, rounds, seeds, misses.

  The groups are all that were looked at, also those that are not drawn.
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
  parts.append(f'{len(runs)} run{plural} of {_lengths_text(settings)}')
  seeds = _values_text((run.settings for run in runs), 'sampling_seed')
  parts.append(f'sampling seed {seeds}')
  diverged = sum(group.num_diverged for group in groups)
  parts.append(f'{diverged} diverged, not drawn')
  unfinished = sum(group.num_unfinished for group in groups)
  if unfinished:
    parts.append(f'{unfinished} not finished')
  return parts


def describe_decay(groups: Sequence[Group]) -> list[str]:
  """Returns a part that says how rates decay, if any of the groups' do."""
  settings = [group.settings for group in groups if group.decays]
  if not settings:
    return []
  rule = _values_text(settings, 'decay_rule')
  numbers = _numbers_text(settings, _DECAY)
  return [f'decay: LocalUpdateDecay from these rates ({rule}: {numbers})']


def describe_rule(groups: Sequence[Group], rule: ranking.Rule) -> str:
  """Returns how the best eta was found among `groups`."""
  constant = [group for group in groups if not group.decays] or list(groups)
  if len({group.family for group in constant}) == len(constant):
    return 'one {} for each {}, found before'.format(
        *map(_symbol, reversed(groups_lib.RATES))
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
    groups: Sequence[Group], shown: Sequence[Group]
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
    group: Group, shows_eta: bool, is_diagonal: bool, digits: int
) -> str:
  # One formula: legends are laid out by the letters of their texts.
  gamma, eta = (_symbol(name).strip('$') for name in groups_lib.RATES)
  value, other = (
      symbols.in_formula(symbols.number_text(rate, digits))
      for rate in (group.client_learning_rate, group.server_learning_rate)
  )
  text = f'{gamma}={eta}={value}' if is_diagonal else f'{gamma}={value}'
  if shows_eta and not is_diagonal:
    text += f', {eta}={other}'
  return f'decay: ${text}$' if group.decays else f'${text}$'


def _describe_unusual(groups: Sequence[Group]) -> list[str]:
  """Returns the settings that are not as usual, with their values."""
  told = {*_SETUP, *_DECAY, *groups_lib.RATES, 'decay_rule'}
  found: dict[str, dict[str, None]] = {}
  for group in groups:
    names = {*group.components['algorithm'], *_USUAL}
    if not group.decays:
      names |= set(group.components.get('rate', {}))
    for name in sorted(names - told):
      value = group.all_runs[0].settings.get(name)
      if value is not None and value != _USUAL.get(name):
        text = setting_text(name, value).partition(' ')[2]
        found.setdefault(name, {})[text] = None
  return [f'{name} {" or ".join(texts)}' for name, texts in found.items()]


def _numbers_text(
    settings: Sequence[Mapping[str, Any]], names: Mapping[str, str]
) -> str:
  """Returns the symbols and values of those settings that there are."""
  return ', '.join(
      f'{symbol} {_values_text(settings, name)}'
      for name, symbol in names.items()
      if any(values.get(name) is not None for values in settings)
  )


def _lengths_text(settings: Sequence[Mapping[str, Any]]) -> str:
  """Returns the lengths of runs: rounds, or queries to a horizon."""
  lengths = [
      f'{_values_text(settings, name)} {unit}'
      for name, unit in (('rounds', 'rounds'), ('horizon', 'queries'))
      if any(values.get(name) is not None for values in settings)
  ]
  return ' or '.join(lengths)


def _values_text(
    settings: Iterable[Mapping[str, Any]], name: str, separator: str = ' or '
) -> str:
  found = {values.get(name) for values in settings} - {None}
  return separator.join(map(str, sorted(found)))


def _symbol(name: str) -> str:
  return symbols.SYMBOLS[name]
