"""Settings of the server optimizers of paper 1, and of rates that change."""

import dataclasses
from typing import Any, Optional

from baselines.settings import schema
from baselines.settings.schema import setting
from tff_localupdate import optimizer_settings


def _full_name(optimizer: str, name: str) -> str:
  return f'{"server" if optimizer == "sgd" else optimizer}_{name}'


def _optimizer_fields() -> list[tuple[str, Any, Any]]:
  """Returns the settings of all server optimizers as fields of a dataclass."""
  return [
      (_full_name(optimizer, name), *schema.own_setting(optimizer, own))
      for optimizer, settings in optimizer_settings.SERVER.items()
      for name, own in settings.items()
  ]


@dataclasses.dataclass(frozen=True)
class _OptimizerChoice:
  """The choice of the server optimizer, and its rate."""

  server_optimizer: str = setting(
      'sgd', 'The server optimizer.', choices=tuple(optimizer_settings.SERVER)
  )
  server_learning_rate: float = setting(
      0.05, 'eta, the rate of the server optimizer.', minimum=0.0
  )


@dataclasses.dataclass(frozen=True)
class ServerOptimizerConfig(
    dataclasses.make_dataclass(
        '_OptimizerSettings', _optimizer_fields(), bases=(_OptimizerChoice,),
        frozen=True,
    )
):
  """Settings of the server optimizer.

  Settings of the chosen optimizer that are not given take its defaults; those
  of the others stay None, and ValueError is raised if one is given.
  """

  def __post_init__(self) -> None:
    schema.check_settings(self)
    schema.fill_own_settings(
        self, 'server_optimizer', optimizer_settings.SERVER, _full_name
    )

  @property
  def hyperparameters(self) -> dict[str, schema.Value]:
    """The chosen optimizer's own settings, named as its builder's arguments."""
    return {
        name: getattr(self, _full_name(self.server_optimizer, name))
        for name in optimizer_settings.SERVER[self.server_optimizer]
    }


_SCHEDULES = ('constant', 'inverse', 'steps')
# The experiments of Charles and Konecny 2020, section 7.
_DECAY_DEFAULTS = {
    'min_improvement': 1e-4,
    'client_decay': 0.1,
    'server_decay': 0.9,
}
_DECAY_ROUNDS = {'window': 100, 'patience': 100, 'cooldown': 100}
_FLOORS = ('min_client_learning_rate', 'min_server_learning_rate')


@dataclasses.dataclass(frozen=True)
class RateConfig:
  """Settings of how gamma and eta change: by a schedule, or at a plateau.

  Raises ValueError also if settings are given that would be ignored, or both a
  schedule and a decay.
  """

  client_schedule: str = setting(
      'constant',
      'gamma_t: constant; inverse, gamma_1 (1 + xi)/(t + xi); or steps, '
      'gamma_1 times the factors of all steps up to t.',
      choices=_SCHEDULES,
  )
  client_schedule_offset: Optional[float] = setting(
      None, 'xi of an inverse client_schedule.', above=-1.0
  )
  client_schedule_steps: Optional[str] = setting(
      None,
      'ROUND:FACTOR for each step of client_schedule, separated by commas.'
  )
  server_schedule: str = setting(
      'constant', 'eta_t, likewise.', choices=_SCHEDULES
  )
  server_schedule_offset: Optional[float] = setting(
      None, 'xi of an inverse server_schedule.', above=-1.0
  )
  server_schedule_steps: Optional[str] = setting(
      None,
      'ROUND:FACTOR for each step of server_schedule, separated by commas.'
  )
  decay_rule: str = setting(
      'none',
      'Whether both rates decay at a plateau of the loss before training '
      '(LocalUpdateDecay): by the rule of the paper (canonical) or by that of '
      'the public callback. Both use the loss in which all clients count the '
      'same; the original callback was given one that counts examples, as '
      'stock tff.learning processes report it.',
      choices=('none', 'canonical', 'callback'),
  )
  window: Optional[int] = setting(
      None,
      'W, the rounds over which the loss is averaged; by default 100.',
      minimum=1,
  )
  patience: Optional[int] = setting(
      None, 'P, the rounds without progress before a decay; by default 100.',
      minimum=0,
  )
  cooldown: Optional[int] = setting(
      None,
      'C, the rounds after a decay in which there is no other one; by default '
      '100.',
      minimum=0,
  )
  representative_clients: Optional[int] = setting(
      None,
      'N, how many clients stand for all: sets W = P = C = N / '
      'clients_per_round, rounded up, instead of giving the three.',
      minimum=1,
  )
  min_improvement: Optional[float] = setting(
      None,
      'Delta, how much lower a loss must be to count as progress; by default '
      '1e-4.',
      minimum=0.0,
  )
  client_decay: Optional[float] = setting(
      None,
      'alpha, the factor of gamma in a decay; by default 0.1.',
      above=0.0
  )
  server_decay: Optional[float] = setting(
      None,
      'beta, the factor of eta in a decay; by default 0.9.',
      above=0.0
  )
  min_client_learning_rate: Optional[float] = setting(
      None,
      'callback: a lower bound on gamma; by default 0.',
      minimum=0.0,
  )
  min_server_learning_rate: Optional[float] = setting(
      None,
      'callback: a lower bound on eta; by default 0.',
      minimum=0.0,
  )

  def __post_init__(self) -> None:
    schema.check_settings(self)
    for side in ('client', 'server'):
      self._check_schedule(side)
    if self.decay_rule == 'none':
      names = (*_DECAY_ROUNDS, *_DECAY_DEFAULTS, *_FLOORS)
      self._refuse_given(
          (*names, 'representative_clients'), "decay_rule is 'none'"
      )
      return
    if not self.is_constant:
      raise ValueError(
          'decay_rule must be none with a schedule, found '
          f'{self.decay_rule!r}.'
      )
    if self.representative_clients is not None:
      self._refuse_given(_DECAY_ROUNDS, 'representative_clients is given')
    else:
      for name, default in _DECAY_ROUNDS.items():
        schema.fill_setting(self, name, default)
    for name, default in _DECAY_DEFAULTS.items():
      schema.fill_setting(self, name, default)
    if self.decay_rule != 'callback':
      self._refuse_given(_FLOORS, "decay_rule is not 'callback'")
      if self.patience == 0:
        raise ValueError('patience must be at least 1, found 0.')
    for name in ('client_decay', 'server_decay'):
      if getattr(self, name) > 1.0:
        raise ValueError(
            f'{name} must be at most 1, found {getattr(self, name)!r}.'
        )

  @property
  def decays(self) -> bool:
    """Whether the rates decay when the loss no longer falls."""
    return self.decay_rule != 'none'

  @property
  def rounds_without_decay(self) -> Optional[int]:
    """Returns the fewest rounds before other rates; None if unknown.

    A decay counts from the round after it.
    """
    if self.patience is None:
      return None
    cooldown, patience = self.cooldown, max(self.patience, 1)
    if self.decay_rule == 'callback':  # A round of it does not block.
      cooldown = max(cooldown - 1, 0)
      if cooldown + patience < self.window:
        return cooldown + patience
    # A window that is full for the first time is progress.
    return max(cooldown, self.window) + patience

  @property
  def is_constant(self) -> bool:
    """Whether there is no schedule."""
    return self.client_schedule == self.server_schedule == 'constant'

  def steps(self, side: str) -> tuple[tuple[int, float], ...]:
    """Returns the schedule of `client` or `server`; ValueError if malformed."""
    text = getattr(self, f'{side}_schedule_steps')
    if text is None:
      return ()
    try:
      pairs = [part.split(':') for part in text.split(',')]
      return tuple((int(start), float(factor)) for start, factor in pairs)
    except ValueError as error:
      raise ValueError(
          f'{side}_schedule_steps must be ROUND:FACTOR between commas, found '
          f'{text!r}.'
      ) from error

  def _check_schedule(self, side: str) -> None:
    kind = getattr(self, f'{side}_schedule')
    for own, name in (('inverse', 'offset'), ('steps', 'steps')):
      full = f'{side}_schedule_{name}'
      is_given = getattr(self, full) is not None
      if is_given and kind != own:
        self._refuse_given((full,), f'{side}_schedule is {kind!r}')
      if kind == own and not is_given:
        raise ValueError(
            f'{full} must be given with {side}_schedule {own!r}, found None.'
        )
    last = 1
    for start, factor in self.steps(side):
      if start <= last or not 0.0 <= factor < float('inf'):
        raise ValueError(
            f'{side}_schedule_steps must have rounds that rise from 2 and '
            'finite factors that are not negative, found '
            f'{getattr(self, f"{side}_schedule_steps")!r}.'
        )
      last = start

  def _refuse_given(self, names: tuple[str, ...], why: str) -> None:
    for name in names:
      if getattr(self, name) is not None:
        raise ValueError(f'{name} would be ignored: {why}.')
