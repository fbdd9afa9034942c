"""The schedules: exact values, sizes, wrong arguments."""

import numpy as np
import pytest

from tff_localupdate.ceal import schedule as schedule_lib


def build(noise_scale=1.0, **changes):
  return schedule_lib.Schedule(
      num_clients=10, noise_scale=noise_scale, **changes
  )


def samples(schedule, stages):
  return [schedule.num_samples(stage) for stage in stages]


def test_group_1_num_samples():
  assert samples(build(), range(1, 7)) == [
      119, 561, 2452, 10394, 43404, 179590
  ]


def test_group_2_num_samples():
  assert samples(build(0.01), range(1, 9)) == [1, 1, 1, 2, 5, 18, 74, 303]
  synthetic = build(0.6, sample_constant=0.0222)
  assert samples(synthetic, range(5, 9)) == [9, 36, 148, 605]
  mnist = build(1.8, sample_constant=0.045)
  assert samples(mnist, range(3, 7)) == [9, 38, 159, 655]


def test_group_3_accuracy():
  found = [build().accuracy(stage) for stage in range(5)]
  assert found == [1.5, 0.75, 0.375, 0.1875, 0.09375]


def test_group_4_gradient_bound():
  found = [build().gradient_bound(stage) for stage in range(1, 7)]
  assert found == [1.0, 1.0, 1.0, 0.9375, 0.46875, 0.234375]


@pytest.mark.parametrize(
    'stage, dimension, value',
    [
        (1, 30, 0.4825510997824719),
        (4, 30, 0.05422951331354587),
        (5, 7840, 0.01966505846131457),
    ],
)
def test_group_5_noise_bound(stage, dimension, value):
  assert build().noise_bound(stage, dimension) == pytest.approx(value, 1e-14)


def test_group_6_resolutions():
  schedule = build(uplink_resolution=0.5, downlink_resolution=0.5)
  assert schedule.uplink_accuracy(1) == pytest.approx(
      0.045834924851410566, 1e-14
  )
  assert schedule.uplink_accuracy(4) == pytest.approx(
      0.004904318289756756, 1e-14
  )
  assert schedule.downlink_accuracy(1) == 0.375
  assert schedule.downlink_accuracy(4) == 0.046875


def test_defaults_are_those_of_the_theory():
  schedule = build()
  assert (schedule.sample_constant, schedule.failure_probability) == (40.0, 0.1)
  assert (schedule.uplink_resolution, schedule.downlink_resolution) == (
      0.9, 0.9
  )
  assert (schedule.first_stage, schedule.threshold_factor) == (1, 4.0)


def test_table_holds_all_stages_that_a_run_can_reach():
  schedule = build(0.6, sample_constant=0.0222, first_stage=5)
  table = schedule.table(2000, 30)
  # Stage 8 takes 605 samples, stage 9 more than 2000.
  assert schedule.last_stage(2000) == 9
  np.testing.assert_array_equal(
      table.num_samples[5:], [9, 36, 148, 605, 2001]
  )
  assert table.threshold[5] == 0.1875
  assert table.uplink_radius[5] == 0.46875 + schedule.noise_bound(5, 30)
  assert table.downlink_radius[5] == 0.46875 + 0.046875
  assert table.uplink_resolution[5] == pytest.approx(0.9 * 0.6 / 3.0)
  assert table.downlink_resolution[5] == 0.9 * 0.046875
  assert all(len(column) == 10 for column in table)


def test_threshold_factor():
  table = build(threshold_factor=6.0).table(1000, 3)
  assert table.threshold[1] == 4.5


@pytest.mark.parametrize(
    'num_samples, rows',
    [(0, 16), (1, 16), (16, 16), (17, 32), (605, 1024), (1024, 1024)],
)
def test_padded_size(num_samples, rows):
  assert schedule_lib.padded_size(num_samples) == rows


def test_default_step_size():
  assert schedule_lib.default_step_size(0.41) == pytest.approx(0.4878, 1e-3)
  with pytest.raises(ValueError, match='smoothness must be a finite number'):
    schedule_lib.default_step_size(0.0)


@pytest.mark.parametrize('value', [0.0, 1.0, -0.1, 1.5, np.nan, '0.5'])
@pytest.mark.parametrize(
    'name', ['failure_probability', 'uplink_resolution', 'downlink_resolution']
)
def test_fractions_are_checked(name, value):
  with pytest.raises(ValueError, match=f'{name} must be a .* found'):
    build(**{name: value})


@pytest.mark.parametrize(
    'name, value',
    [
        ('noise_scale', 0.0),
        ('noise_scale', -1.0),
        ('sample_constant', 0.0),
        ('threshold_factor', np.inf),
        ('first_stage', 0),
        ('num_clients', 0),
        ('num_clients', 2.5),
    ],
)
def test_numbers_are_checked(name, value):
  arguments = {'num_clients': 10, 'noise_scale': 1.0, name: value}
  with pytest.raises(ValueError, match=f'{name} must be a .* found {value}'):
    schedule_lib.Schedule(**arguments)


def test_noise_whose_square_underflows_is_refused():
  build(1e-150)
  with pytest.raises(ValueError, match='noise_scale must be large enough'):
    build(1e-170)
