"""The plan of an exchange: from the tables, at the horizon, of the oracle."""

import math

import numpy as np
import pytest
import tensorflow as tf

from tests.ceal import problem
from tff_localupdate.ceal import exchange
from tff_localupdate.compression import codes
from tff_localupdate.compression import quantizers


def build_rules(**changes):
  arguments = dict(
      schedule=problem.build_schedule(),
      horizon=100,
      dimension=6,
      dtype='float64',
      quantizer=quantizers.GridQuantizer(),
      code=codes.SignedUnaryCode(),
  )
  return exchange.ExchangeRules(**{**arguments, **changes})


def plan(rules, stage=2, time_used=0, norm=math.nan):
  found = rules.plan(
      tf.constant(stage, tf.int64),
      tf.constant(time_used, tf.int64),
      tf.constant(norm, rules.dtype),
  )
  return exchange.ExchangePlan(*(entry.numpy() for entry in found))


@pytest.mark.parametrize('stage', [2, 3, 4])
def test_plan_is_the_schedule(stage):
  schedule = problem.build_schedule()
  found = plan(build_rules(), stage)
  assert found.num_queries == schedule.num_samples(stage) and found.sends
  assert found.threshold == 4.0 * schedule.accuracy(stage)
  assert found.uplink_resolution == schedule.uplink_accuracy(stage)
  assert found.uplink_radius == schedule.gradient_bound(
      stage
  ) + schedule.noise_bound(stage, 6)
  assert found.downlink_resolution == schedule.downlink_accuracy(stage)
  assert found.downlink_radius == schedule.gradient_bound(
      stage
  ) + schedule.accuracy(stage)


def test_rest_of_the_horizon_sends_nothing():
  needed = problem.build_schedule().num_samples(2)
  rules = build_rules()
  assert plan(rules, time_used=100 - needed).sends
  found = plan(rules, time_used=100 - needed + 1)
  assert not found.sends and found.num_queries == needed - 1
  found = plan(rules, time_used=100)
  assert not found.sends and found.num_queries == 0


def test_without_clipping_the_radii_are_infinite():
  found = plan(build_rules(clip=False))
  assert found.uplink_radius == found.downlink_radius == np.inf


def test_plan_of_the_oracle():
  rules = build_rules(epoch_length='oracle')
  found = plan(rules, norm=0.1)
  assert found.num_queries == math.ceil(2 * 0.25 / (10 * 0.01)) == 5
  assert found.sends and found.threshold == 0.0
  assert found.uplink_resolution == pytest.approx(0.9 * 0.5 / math.sqrt(5))
  spread = 1.0 + math.sqrt(math.log(4 * 10 / 0.1) / 12.0)
  assert found.uplink_radius == pytest.approx(
      0.1 + 4 * 0.5 / math.sqrt(5) * spread
  )
  assert found.downlink_resolution == pytest.approx(0.9 * 0.025)
  assert found.downlink_radius == pytest.approx(0.125)
  found = plan(rules, norm=0.0)
  assert found.num_queries == 100 and not found.sends


@pytest.mark.parametrize('name', ['reset_stage', 'broadcast_every_exchange'])
def test_what_the_oracle_would_ignore_is_refused(name):
  with pytest.raises(ValueError, match=f'{name} must not be set'):
    build_rules(epoch_length='oracle', **{name: True})


@pytest.mark.parametrize(
    'changes, error, message',
    [
        ({'horizon': 0}, ValueError, 'horizon must be a whole number'),
        ({'epoch_length': 'x'}, ValueError, 'epoch_length must be one of'),
        ({'code': 'unary'}, TypeError, 'code must be of type Code'),
        ({'schedule': None}, TypeError, 'schedule must be of type Schedule'),
    ],
)
def test_wrong_arguments(changes, error, message):
  with pytest.raises(error, match=message):
    build_rules(**changes)
