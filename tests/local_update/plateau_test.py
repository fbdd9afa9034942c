"""The plateau rule, against the listings written anew in plain Python.

Two rates decay: by one rule together, by the callback's each on its own.
"""

import math

import numpy as np
import pytest
import tensorflow as tf

from tff_localupdate.local_update import plateau

G27_LOSSES = (5.0, 4.0, 3.95, 3.85, 3.86, 3.0)


def _run(rule, losses, **function_options):
  """Returns the rounds after which the rule decays, and the last state."""

  @tf.function(**function_options)
  def run(losses):
    return tf.scan(
        lambda state, loss: plateau.update(rule, state, loss).state,
        losses,
        plateau.initial_state(rule),
    )

  states = run(tf.constant(losses, tf.float64))
  rounds = np.flatnonzero(np.diff(states.num_decays, prepend=0)) + 1
  return rounds.tolist(), tf.nest.map_structure(lambda leaf: leaf[-1], states)


def _transcribe_canonical(rule, losses):
  """The state machine of the specification, section 7."""
  window, best, bad, cool, rounds = [], math.inf, 0, rule.cooldown, []
  for round_num, loss in enumerate(losses, 1):
    if math.isnan(loss):
      continue
    window = (window + [loss])[-rule.window :]
    is_full = len(window) == rule.window
    value = sum(window) / rule.window if is_full else math.inf
    better = value < best - rule.min_improvement
    if better:
      best = value
    if cool > 0:
      cool -= 1
      bad = 0
    elif not is_full or better:
      bad = 0
    else:
      bad += 1
      if bad >= rule.patience:
        rounds.append(round_num)
        bad, cool = 0, rule.cooldown
  return rounds


def _transcribe_callback(rule, losses, floor_after=math.inf):
  """The callback as the specification lists its differences.

  It may decay `floor_after` times before the rate is at its floor.
  """
  window = [math.inf] * rule.window
  best, wait, counter, rounds = math.inf, 0, rule.cooldown, []
  for round_num, loss in enumerate(losses, 1):
    window = window[1:] + [loss]
    average = sum(window) / rule.window
    if counter > 0:
      counter -= 1
      wait = 0
    if average < best - rule.min_improvement:
      best, wait = average, 0
    elif counter <= 0:
      wait += 1
      if wait >= rule.patience and len(rounds) < floor_after:
        rounds.append(round_num)
        counter, wait = rule.cooldown, 0
  return rounds


def _random_rules(kind, count):
  rng = np.random.default_rng(3)
  for _ in range(count):
    yield plateau.PlateauRule(
        window=int(2 ** rng.integers(0, 4)),
        patience=int(rng.integers(1, 8)),
        cooldown=int(rng.integers(0, 8)),
        min_improvement=float(rng.integers(0, 3)) / 8,
        rule=kind,
    )


def _random_losses(seed, count=80):
  """A falling, noisy loss in eighths: averages of 2^n of them are exact."""
  rng = np.random.default_rng(seed)
  noise = rng.integers(-8, 9, size=count)
  return (np.round(40 * 0.95 ** np.arange(count)) + noise) / 8


@pytest.mark.parametrize(
    'kind, transcribe',
    [
        ('canonical', _transcribe_canonical),
        ('callback', _transcribe_callback),
    ],
)
def test_equals_the_listing_for_random_settings(kind, transcribe):
  num_decays = 0
  for seed, rule in enumerate(_random_rules(kind, 25)):
    losses = _random_losses(seed)
    rounds, state = _run(rule, losses)
    assert rounds == transcribe(rule, losses), (rule, seed)
    assert int(state.num_decays) == len(rounds)
    num_decays += len(rounds)
  assert num_decays > 100


def test_rules_differ_for_most_settings():
  rounds = [
      [
          plateau_rounds(rule, _random_losses(seed))
          for seed, rule in enumerate(_random_rules(kind, 60))
      ]
      for kind, plateau_rounds in (
          ('canonical', _transcribe_canonical),
          ('callback', _transcribe_callback),
      )
  ]
  different = sum(a != b for a, b in zip(*rounds))
  assert different > 30


def test_g27_constant_loss():
  rule = plateau.PlateauRule(100, 100, 100)
  assert _run(rule, [1.7] * 600)[0] == [200, 400, 600]


def test_g27_constant_loss_by_the_callback():
  rule = plateau.PlateauRule(100, 100, 100, rule='callback')
  assert _run(rule, [1.7] * 600)[0] == [200, 399, 598]


def test_g27_algorithm_3():
  rule = plateau.PlateauRule(1, 1, 0, 0.1)
  assert _run(rule, G27_LOSSES)[0] == [3, 5]


def test_drift_below_the_improvement_counts_as_progress_now_and_then():
  """A moving reference would decay six times here; `best` does not."""
  rule = plateau.PlateauRule(1, 3, 0, 0.1)
  losses = [10 - 0.06 * t for t in range(20)]
  assert _run(rule, losses)[0] == []
  reference, bad, decays = math.inf, 0, 0
  for loss in losses:
    bad = 0 if loss < reference - 0.1 else bad + 1
    reference = min(reference, loss)
    if bad >= 3:
      bad, decays = 0, decays + 1
  assert decays == 6


def test_progress_needs_more_than_the_improvement():
  rule = plateau.PlateauRule(1, 1, 0, 0.5)
  assert _run(rule, [4.0, 3.5])[0] == [2]
  assert _run(rule, [4.0, 3.4])[0] == []


def test_callback_difference_1_warm_up_counts_as_no_progress():
  settings = dict(window=5, patience=2, cooldown=0)
  canonical = plateau.PlateauRule(**settings)
  callback = plateau.PlateauRule(**settings, rule='callback')
  losses = [3.0 - 0.5 * t for t in range(6)]
  assert _run(canonical, losses)[0] == []
  # Rounds 1 and 2, then 3 and 4: the window is full from round 5 on.
  assert _run(callback, losses)[0] == [2, 4]


def test_callback_difference_2_cooldown_blocks_one_round_less():
  for cooldown in (1, 2, 5):
    settings = dict(window=1, patience=1, cooldown=cooldown)
    constant = [1.0] * 40
    after = {
        kind: np.diff(_run(
            plateau.PlateauRule(**settings, rule=kind), constant)[0])
        for kind in plateau.RULES
    }
    assert set(after['canonical']) == {cooldown + 1}
    assert set(after['callback']) == {cooldown}


def test_callback_difference_3_patience_0_acts_as_1():
  zero, one = (
      plateau.PlateauRule(2, patience, 1, rule='callback')
      for patience in (0, 1)
  )
  losses = _random_losses(1)
  assert _run(zero, losses)[0] == _run(one, losses)[0] != []
  with pytest.raises(ValueError, match='patience'):
    plateau.PlateauRule(2, 0, 1)


def test_callback_difference_3_counter_is_not_reset_at_the_floor():
  rule = plateau.PlateauRule(1, 3, 0, rule='callback')
  state, counts = plateau.initial_state(rule), []
  for _ in range(6):
    result = plateau.update(rule, state, 1.0, may_decay=False)
    state = result.state
    assert not result.decays
    counts.append(int(state.num_bad))
  assert counts == [0, 1, 2, 3, 4, 5]
  # Room again, as after a rate that was set by hand: it decays at once.
  assert plateau.update(rule, state, 1.0, may_decay=True).decays
  losses = _random_losses(2)
  assert _transcribe_callback(rule, losses, floor_after=0) == []


@pytest.mark.parametrize('kind', plateau.RULES)
def test_callback_difference_7_none_best_is_kept(kind):
  """Moves in the cooldown, with progress alone, and is never reset."""
  rule = plateau.PlateauRule(1, 1, 3, 0.5, rule=kind)
  state, best = plateau.initial_state(rule), []
  for loss in (9.0, 8.0, 7.75, 9.0, 9.0, 7.25, 9.0):
    state = plateau.update(rule, state, loss).state
    best.append(float(state.best))
  assert int(state.num_decays) >= 1
  assert best == [9.0, 8.0, 8.0, 8.0, 8.0, 7.25, 7.25]


@pytest.mark.parametrize('kind', plateau.RULES)
def test_nan_leaves_everything_as_it_is(kind):
  rule = plateau.PlateauRule(4, 2, 3, rule=kind)
  losses = list(_random_losses(5, 40))
  expected, expected_state = _run(rule, losses)
  # A round without clients between any two rounds, and at the start.
  with_gaps = [value for loss in losses for value in (math.nan, loss)]
  rounds, state = _run(rule, with_gaps)
  assert rounds == [2 * round_num for round_num in expected] != []
  for a, b in zip(expected_state, state):
    np.testing.assert_array_equal(a, b)
  result = plateau.update(rule, state, math.nan)
  assert math.isnan(result.average_loss) and not result.decays


def test_infinite_loss_leaves_the_window_again():
  rule = plateau.PlateauRule(2, 1, 0)
  assert _run(rule, [4.0, 4.0, math.inf, 3.0, 2.0])[0] == [3, 4]


def test_average_loss_is_that_of_the_window():
  rule = plateau.PlateauRule(3, 1, 0)
  state, averages = plateau.initial_state(rule), []
  for loss in (3.0, 6.0, 9.0, 0.0):
    result = plateau.update(rule, state, loss)
    state = result.state
    averages.append(float(result.average_loss))
  assert averages == [math.inf, math.inf, 6.0, 5.0]


def test_float32_losses_and_python_numbers_and_xla():
  rule = plateau.PlateauRule(1, 1, 0, 0.1)
  assert _run(rule, G27_LOSSES, jit_compile=True)[0] == [3, 5]
  state = plateau.initial_state(rule)
  plain, narrow = (
      plateau.update(rule, state, loss) for loss in (0.1, tf.constant(0.1))
  )
  assert float(plain.state.best) == 0.1
  assert float(narrow.state.best) == float(np.float32(0.1))


def test_representative_clients():
  rule = plateau.PlateauRule.for_representative_clients(1000, 10)
  assert rule == plateau.PlateauRule(100, 100, 100, 1e-4, 'canonical')
  rule = plateau.PlateauRule.for_representative_clients(
      np.int64(101), 10, min_improvement=0.5, rule='callback'
  )
  assert rule == plateau.PlateauRule(11, 11, 11, 0.5, 'callback')
  assert plateau.PlateauRule.for_representative_clients(1, 10).window == 1
  with pytest.raises(ValueError, match='representative_clients'):
    plateau.PlateauRule.for_representative_clients(0, 10)
  with pytest.raises(ValueError, match='clients_per_round'):
    plateau.PlateauRule.for_representative_clients(10, 2.5)


def test_numbers_of_numpy_are_taken_as_numbers():
  rule = plateau.PlateauRule(
      np.int64(1), np.int64(1), np.int64(0), np.float32(0.5)
  )
  assert _run(rule, [4.0, 3.5])[0] == [2]


@pytest.mark.parametrize(
    'field, value',
    [
        ('window', 0), ('window', 1.5), ('window', True), ('patience', -1),
        ('patience', False), ('cooldown', -1), ('cooldown', 0.5),
        ('min_improvement', -1e-9), ('min_improvement', math.nan),
        ('rule', 'adaptive'),
    ],
)
def test_refused(field, value):
  with pytest.raises(ValueError, match=field):
    plateau.PlateauRule(**{field: value})


def _run_decays(decays, losses, rates=(1.0, 1.0), dtype=tf.float64):
  """Returns the rates after each round, and the last states."""
  states = plateau.initial_states(decays)
  rates, history = [tf.constant(rate, dtype) for rate in rates], []
  for loss in losses:
    results, rates = plateau.apply(decays, states, loss, rates)
    states = tuple(result.state for result in results)
    history.append(tuple(float(rate) for rate in rates))
  return history, states


def _decays(rule, server_rule=None, factors=(0.1, 0.9), floors=(0.0, 0.0)):
  return plateau.build_rate_decays(
      rule, server_rule, factors=factors, floors=floors
  )


def test_g27_rates():
  decays = _decays(plateau.PlateauRule(1, 1, 0, 0.1))
  history, states = _run_decays(decays, (5.0, 4.0, 3.95, 3.85, 3.86, 3.0))
  assert history[1] == (1.0, 1.0) and history[2] == (0.1, 0.9)
  assert history[3] == (0.1, 0.9)
  assert history[5] == pytest.approx((0.01, 0.81), abs=1e-15)
  assert len(states) == 1


def test_float64_factors_are_exact():
  history, _ = _run_decays(_decays(plateau.PlateauRule(1, 1, 0)), [1.0, 1.0])
  assert history[-1] == (0.1, 0.9)


def test_factor_1_keeps_the_rate_bit_for_bit():
  decays = _decays(plateau.PlateauRule(1, 1, 0), factors=(1.0, 0.5))
  history, _ = _run_decays(
    decays, [1.0] * 4, rates=(0.1, 0.1), dtype=tf.float32
  )
  assert [h[0] for h in history] == [float(tf.constant(0.1))] * 4
  assert history[-1][1] == pytest.approx(0.0125)


def test_callback_difference_3_rules_are_independent():
  fast = plateau.PlateauRule(1, 1, 0, rule='callback')
  slow = plateau.PlateauRule(2, 3, 0, rule='callback')
  history, states = _run_decays(_decays(fast, slow), [1.0] * 7)
  # Client: after every round but the first. Server: the window is full from
  # round 2 on, where the average is progress, then after rounds 5.
  assert [h[0] for h in history] == pytest.approx(
      [1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6]
  )
  assert [h[1] for h in history] == pytest.approx(
      [1.0, 1.0, 1.0, 1.0, 0.9, 0.9, 0.9]
  )
  assert [int(state.num_decays) for state in states] == [6, 1]


def test_callback_difference_3_floor_parts_the_rates():
  rule = plateau.PlateauRule(1, 2, 3, rule='callback')
  history, states = _run_decays(
      _decays(rule, floors=(0.05, 0.0)), [1.0] * 20, dtype=tf.float32
  )
  client, server = zip(*history)
  # Never below the floor, exactly at it after two decays.
  assert min(client) == float(tf.constant(0.05)) == client[-1]
  first, second = (int(state.num_decays) for state in states)
  assert first == 2 < second
  assert server[-1] == pytest.approx(0.9**second)
  # At the floor the counter runs on; the server's is reset by its decays.
  assert int(states[0].num_bad) > 2 > int(states[1].num_bad)


def test_equal_rules_decay_in_step():
  rule = plateau.PlateauRule(2, 2, 2, rule='callback')
  history, states = _run_decays(_decays(rule), [1.0] * 20)
  counts = {int(state.num_decays) for state in states}
  assert len(counts) == 1 and len(states) == 2
  (count,) = counts
  assert history[-1] == pytest.approx((0.1**count, 0.9**count))


@pytest.mark.parametrize(
    'kwargs, message',
    [
        (dict(factors=(0.0, 0.9)), 'client_decay'),
        (dict(factors=(0.1, 1.1)), 'server_decay must be at most 1'),
        (dict(floors=(-1.0, 0.0)), 'min_client_learning_rate'),
        (dict(floors=(0.0, 0.1)), 'min_server_learning_rate must be given'),
        (dict(server_rule=plateau.PlateauRule()), 'server_rule must be given'),
    ],
)
def test_rates_that_cannot_decay_so_are_refused(kwargs, message):
  with pytest.raises(ValueError, match=message):
    _decays(plateau.PlateauRule(), **kwargs)


def test_rules_of_another_type_are_refused():
  with pytest.raises(TypeError, match='rule must be of type'):
    _decays('canonical')
  with pytest.raises(TypeError, match='server_rule must be of type'):
    _decays(plateau.PlateauRule(rule='callback'), 100)
