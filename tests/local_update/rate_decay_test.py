"""Two rates decay: by one rule together, by the callback's each on its own."""

import pytest
import tensorflow as tf

from tff_localupdate.local_update import plateau


def _run(decays, losses, rates=(1.0, 1.0), dtype=tf.float64):
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
  history, states = _run(decays, (5.0, 4.0, 3.95, 3.85, 3.86, 3.0))
  assert history[1] == (1.0, 1.0) and history[2] == (0.1, 0.9)
  assert history[3] == (0.1, 0.9)
  assert history[5] == pytest.approx((0.01, 0.81), abs=1e-15)
  assert len(states) == 1


def test_float64_factors_are_exact():
  history, _ = _run(_decays(plateau.PlateauRule(1, 1, 0)), [1.0, 1.0])
  assert history[-1] == (0.1, 0.9)


def test_factor_1_keeps_the_rate_bit_for_bit():
  decays = _decays(plateau.PlateauRule(1, 1, 0), factors=(1.0, 0.5))
  history, _ = _run(decays, [1.0] * 4, rates=(0.1, 0.1), dtype=tf.float32)
  assert [h[0] for h in history] == [float(tf.constant(0.1))] * 4
  assert history[-1][1] == pytest.approx(0.0125)


def test_callback_difference_3_rules_are_independent():
  fast = plateau.PlateauRule(1, 1, 0, rule='callback')
  slow = plateau.PlateauRule(2, 3, 0, rule='callback')
  history, states = _run(_decays(fast, slow), [1.0] * 7)
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
  history, states = _run(
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
  history, states = _run(_decays(rule), [1.0] * 20)
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
def test_refused(kwargs, message):
  with pytest.raises(ValueError, match=message):
    _decays(plateau.PlateauRule(), **kwargs)


def test_rules_of_another_type_are_refused():
  with pytest.raises(TypeError, match='rule must be of type'):
    _decays('canonical')
  with pytest.raises(TypeError, match='server_rule must be of type'):
    _decays(plateau.PlateauRule(rule='callback'), 100)
