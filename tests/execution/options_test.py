"""Options of compilation are checked when they are made."""

import pytest

from tff_localupdate.execution import devices as devices_lib


@pytest.mark.parametrize('chosen, words', [
    (dict(jit='maybe'), "jit: must be one of .*, got 'maybe'"),
    (dict(clients='all'), "clients: must be one of .*, got 'all'"),
    (dict(devices=()), r'devices: must be names .* got \(\)'),
    (dict(devices='GPU:0'), "devices: must be names .* got 'GPU:0'"),
    (dict(devices=('GPU:0',)), 'devices: must be names'),
])
def test_options_are_checked(chosen, words):
  with pytest.raises(ValueError, match=words):
    devices_lib.ExecutionOptions(**chosen)


@pytest.mark.parametrize('devices, expected', [
    (devices_lib.HOST, True),
    (('/device:GPU:0',), False),
    (('/device:GPU:0', '/device:CPU:0'), True),
])
def test_one_cpu_is_enough_to_count(devices, expected):
  assert devices_lib.ExecutionOptions(devices).use_cpu == expected
