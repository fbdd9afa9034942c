"""What is declared of a setting holds: one test per kind of rule, for all.

Everything is read off the declarations, so a new setting is tested as soon as
it is there. Rules between settings are in `rules_test`.
"""

import dataclasses
import itertools
import math
from typing import Optional

import numpy as np
import pytest

from baselines import command
from baselines.settings import algorithms
from baselines.settings import commands
from baselines.settings import experiment
from baselines.settings import flags
from baselines.settings import record
from baselines.settings import schema
from baselines.sweeps import grid

_OWN = (commands.OutputConfig, commands.SweepOutputConfig, grid.GridConfig)
_TYPES = flags.all_types(_OWN)
_DECLARED = [
    (kind, field) for kind in _TYPES for field in dataclasses.fields(kind)
]
_NAMES = sorted({field.name for _, field in _DECLARED})
_WRONG = {
    bool: (1, 'true', 0.0),
    int: (1.0, True, '1', [1]),
    float: (True, '1', [1.0]),
    str: (1, True, ['a']),
}
_KINDS = {
    bool: 'true or false', int: 'a whole number', float: 'a number',
    str: 'a text',
}


def _declared(*rules):
  """The settings that have one of these rules."""
  found = [
      (kind, field) for kind, field in _DECLARED
      if not rules or any(field.metadata[r] not in (None, ()) for r in rules)
  ]
  assert found
  return found


def _alone(field, value):
  """The value as a setting takes it that no other setting is beside."""
  kind = dataclasses.make_dataclass(
      'Alone',
      [(field.name, field.type,
        dataclasses.field(default=field.default, metadata=field.metadata))],
      namespace={'__post_init__': schema.check_settings}, frozen=True,
  )
  return getattr(kind(**{field.name: value}), field.name)


def _assert_refused(kind, field, value, message):
  for build in (kind, lambda **values: _alone(field, *values.values())):
    with pytest.raises(ValueError) as caught:
      build(**{field.name: value})
    assert str(caught.value).startswith(f'{field.name} must {message}'), (
        kind, caught.value
    )


def _next(field, bound, towards):
  """The number next to a bound, as the setting has numbers."""
  if schema.value_type(field) is int:
    return bound + (1 if towards > bound else -1)
  return math.nextafter(bound, towards)


def _legal(field):
  """Some legal values of a setting that is alone."""
  rules, kind = field.metadata, schema.value_type(field)
  if rules['choices']:
    return list(rules['choices'])
  if kind is bool:
    return [True, False]
  if kind is str:
    return ['1', 'a text, with = and #']
  low = -1e3 if rules['minimum'] is None else rules['minimum']
  if rules['above'] is not None:
    low = max(low, _next(field, rules['above'], math.inf))
  high = low + 7
  if rules['below'] is not None:
    high = _next(field, rules['below'], -math.inf)
  return [kind(low), kind(low + (min(high, low + 7) - low) / 3), kind(high)]


def test_names_are_those_of_one_setting():
  # Algorithms may share a setting, and so may commands; nothing else does.
  shared = [set(_OWN), {e.config_type for e in algorithms.ALGORITHMS.values()}]
  for name in _NAMES:
    kinds = {kind for kind, field in _DECLARED if field.name == name}
    assert len(kinds) == 1 or any(kinds <= group for group in shared), name
    types = {
        schema.value_type(f) for _, f in _DECLARED if f.name == name
    }
    assert len(types) == 1, name


def test_defaults_are_legal():
  for kind in _TYPES:
    assert kind() == kind()
  for kind, field in _DECLARED:
    if field.default is None:
      assert field.type == Optional[schema.value_type(field)], field.name
    else:
      assert type(field.default) is schema.value_type(field), (kind, field.name)
      assert _alone(field, field.default) == field.default


def test_each_has_one_sentence_or_more_of_help():
  for _, field in _DECLARED:
    assert field.metadata['help'].endswith('.'), field.name


def test_other_types_are_refused():
  for kind, field in _DECLARED:
    wrong = _WRONG[schema.value_type(field)]
    for value in wrong if field.default is None else (*wrong, None):
      _assert_refused(
          kind, field, value, f'be {_KINDS[schema.value_type(field)]}, found'
      )


def test_numbers_below_the_minimum_are_refused_and_the_minimum_is_not():
  for kind, field in _declared('minimum'):
    minimum = field.metadata['minimum']
    _assert_refused(kind, field, schema.value_type(field)(minimum - 1),
                    f'be at least {minimum}, found')
    if field.metadata['above'] is None:
      assert _alone(field, minimum) == minimum


def test_bounds_that_must_not_be_reached_are_refused():
  for kind, field in _declared('above'):
    bound = field.metadata['above']
    _assert_refused(kind, field, bound, f'be greater than {bound}, found')
  for kind, field in _declared('below'):
    bound = schema.value_type(field)(field.metadata['below'])
    _assert_refused(
        kind, field, bound, f'be less than {field.metadata["below"]}, found'
    )


def test_legal_values_are_taken_up_to_the_bounds():
  for _, field in _DECLARED:
    for value in _legal(field):
      assert _alone(field, value) == value, (field.name, value)


def test_what_is_no_choice_is_refused_with_those_there_are():
  for kind, field in _declared('choices'):
    choices = ', '.join(field.metadata['choices'])
    _assert_refused(kind, field, 'no-choice', f'be one of {choices}; found')
    assert field.default in (None, *field.metadata['choices'])


def test_empty_texts_and_infinite_numbers_are_refused():
  for kind, field in _DECLARED:
    if schema.value_type(field) is float:
      for value in (math.nan, math.inf, -math.inf):
        _assert_refused(kind, field, value, 'be finite, found')
    elif schema.value_type(field) is str and not field.metadata['choices']:
      for value in ('', ' '):
        _assert_refused(kind, field, value, 'not be empty, found')


def test_numbers_of_numpy_are_those_of_python():
  for kind, field in _DECLARED:
    convert = {int: np.int64, float: np.float64, bool: np.bool_}.get(
        schema.value_type(field)
    )
    for value in _legal(field)[:2] if convert else ():
      found = _alone(field, convert(value))
      assert found == value and type(found) is type(value), (kind, field.name)


def test_each_is_a_flag_and_a_keyword_with_the_same_value():
  for name in _NAMES:
    _, field = next(pair for pair in _DECLARED if pair[1].name == name)
    for value in _legal(field):
      by_keyword = flags.arguments_of({name: value}, *_OWN)
      assert flags.parse(by_keyword, '', *_OWN) == {name: value}
      typed = [f'--{name}', str(value)]
      if isinstance(value, bool):
        typed = [f'--{name}' if value else f'--no{name}']
      assert flags.parse(typed, '', *_OWN) == {name: value}


def test_names_that_are_nearly_right_are_refused_with_the_right_one():
  for name in _NAMES:
    if name.startswith('sweep_'):
      continue
    expected = f"Unknown setting '{name}x'. Did you mean {name}?"
    with pytest.raises(command.InputError) as caught:
      flags.arguments_of({f'{name}x': 1}, *_OWN)
    assert str(caught.value) == expected
    if name.startswith('c'):  # The others are refused in the same way.
      with pytest.raises(command.InputError) as caught:
        flags.parse([f'--{name}x=1'], '', *_OWN)
      assert str(caught.value) == expected


def test_help_names_each_with_its_default_and_choices():
  with pytest.raises(command.HelpRequested) as caught:
    flags.parse(['--help'], 'A command.', *_OWN)
  lines = str(caught.value).splitlines()
  text = ' '.join(str(caught.value).split())
  for _, field in _DECLARED:
    default = '' if field.default is None else f' (default: {field.default})'
    assert f'--{field.name}{default}' in lines, field.name
    assert ' '.join(field.metadata['help'].split()) in text
    if field.metadata['choices']:
      assert f'One of: {", ".join(field.metadata["choices"])}.' in text
  assert max(map(len, lines)) <= 80


@pytest.mark.parametrize('name', algorithms.ALGORITHMS)
def test_settings_that_only_other_algorithms_have_are_refused(name):
  entry = algorithms.ALGORITHMS[name]
  extra = (experiment.ServerOptimizerConfig, experiment.RateConfig)
  own = {f.name for f in dataclasses.fields(entry.config_type)}
  if entry.has_server_optimizer:
    own.update(f.name for kind in extra for f in dataclasses.fields(kind))
  others = {
      field.name: field
      for kind in (*(e.config_type for e in algorithms.ALGORITHMS.values()),
                   *extra)
      for field in dataclasses.fields(kind) if field.name not in own
  }
  assert others
  for other, field in others.items():
    given = {'algorithm': name, other: _legal(field)[0]}
    with pytest.raises(command.InputError) as caught:
      flags.build_experiment(given)
    assert str(caught.value).startswith(
        f"{other} would be ignored: algorithm is '{name}'"
    )


def test_records_hold_what_is_declared_as_recorded():
  recorded = record.settings(experiment.ExperimentConfig())
  for kind in (experiment.TaskConfig, experiment.RunConfig,
               experiment.ExecutionConfig):
    for field in dataclasses.fields(kind):
      is_held = field.name in recorded
      if field.default is not None:
        assert is_held == field.metadata['recorded_at_default'], field.name
        other = next(v for v in _legal(field) if v != field.default)
        assert schema.is_recorded(field, other)
      assert not schema.is_recorded(field, None)


@dataclasses.dataclass(frozen=True)
class _Example:
  count: int = schema.setting(1, 'A number.', minimum=1)
  rate: float = schema.setting(0.5, 'A rate.', above=0.0, below=1.0)
  word: str = schema.setting('a', 'A word.', choices=('a', 'b'))
  flag: bool = schema.setting(True, 'A switch.')
  late: Optional[float] = schema.setting(None, 'Depends.', minimum=0.0)

  def __post_init__(self):
    schema.check_settings(self)


def test_sentences_of_refusals():
  # The tests above take them from the same declarations.
  for wrong, message in {
      ('count', 0): 'count must be at least 1, found 0.',
      ('count', 1.5): 'count must be a whole number, found 1.5.',
      ('rate', 0.0): 'rate must be greater than 0.0, found 0.0.',
      ('rate', 1.0): 'rate must be less than 1.0, found 1.0.',
      ('rate', math.nan): 'rate must be finite, found nan.',
      ('word', 'c'): "word must be one of a, b; found 'c'.",
      ('flag', 1): 'flag must be true or false, found 1.',
      ('late', -1): 'late must be at least 0.0, found -1.0.',
  }.items():
    with pytest.raises(ValueError) as caught:
      _Example(**dict([wrong]))
    assert str(caught.value) == message


def test_settings_equal_in_value_are_equal_whatever_their_type():
  assert _Example(count=np.int32(2)) == _Example(count=2)
  assert hash(_Example(rate=np.float64(0.25))) == hash(_Example(rate=0.25))
  example = _Example(rate=np.float32(0.5), late=0)
  assert [type(v) for v in dataclasses.astuple(example)] == [
      int, float, str, bool, float
  ]


def test_fill_setting_keeps_a_value_that_is_there():
  example = _Example()
  schema.fill_setting(example, 'late', 2.0)
  schema.fill_setting(example, 'late', 3.0)
  assert example.late == 2.0


def test_every_combination_of_two_choices_is_legal_or_refused_by_name():
  fields = {
      field.name: field for _, field in _declared('choices')
      if field.name not in ('task', 'algorithm', 'data_source')
  }
  for first, second in itertools.combinations(fields.values(), 2):
    for values in itertools.product(_legal(first), _legal(second)):
      given = dict(zip((first.name, second.name), values))
      try:
        flags.build_experiment(given)
      except command.InputError as error:
        named = str(error).split()[0]
        assert named in _NAMES, (given, error)
