"""Devices and options: choice, refusals, cohorts that are split over two."""

import ctypes
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from tests.execution.processes import BOTH
from tests.execution.processes import build_matrix_process
from tests.execution.processes import CPU
from tests.local_update import spec_examples
from tff_localupdate import execution
from tff_localupdate import server_optimizers
from tff_localupdate import theta
from tff_localupdate.execution import devices
from tff_localupdate.local_update import client_work
from tff_localupdate.local_update import process as process_lib

SIZE = 7


def _run(chosen, jit, size=SIZE):
  program_ = execution.compile_process(
      build_matrix_process(), devices=chosen, jit=jit
  )
  matrices = np.random.default_rng(0).normal(size=(size, 6, 6)) / 10
  state, totals = program_.initialize(), []
  for _ in range(3):
    state, total = program_.next(state, matrices.astype(np.float32))
    totals.append(total)
  return program_, totals


@pytest.mark.parametrize('jit', ['off', 'on'])
def test_two_devices_share_a_cohort_and_agree_with_one(jit):
  one, expected = _run(CPU, jit)
  two, totals = _run(BOTH, jit)
  np.testing.assert_allclose(totals, expected, rtol=1e-5)
  assert one.jit == two.jit == (jit == 'on')
  assert 'ran on CPU:0 (' in one.device_report
  assert 'ran on CPU:0, CPU:1 (' in two.device_report


@pytest.mark.parametrize('jit', ['off', 'on'])
def test_second_device_works_alone(jit):
  only, totals = _run(BOTH[1:], jit)
  np.testing.assert_allclose(totals, _run(CPU, jit)[1], rtol=1e-6)
  assert 'ran on CPU:1 (' in only.device_report


def test_fewer_clients_than_devices():
  two, totals = _run(BOTH, 'off', size=1)
  np.testing.assert_allclose(totals, _run(CPU, 'off', size=1)[1])
  assert two.client_devices == ('CPU:1',)


def _local_update():
  """A process whose sums have an integer leaf before the floating ones."""
  model = spec_examples.logistic_model(np.float32, (0.0, 0.0))
  return process_lib.build_local_update(
      model, theta=theta.Theta.ones(3), batch_size=2, client_learning_rate=0.1,
      server_optimizer=server_optimizers.build_sgd(0.1),
  )


@pytest.mark.parametrize('clients', ['loop', 'parallel'])
@pytest.mark.parametrize('jit', ['off', 'on'])
@pytest.mark.parametrize('chosen', [CPU, BOTH[1:], BOTH])
def test_work_and_state_are_where_they_were_asked_for(chosen, jit, clients):
  program = execution.compile_process(
      _local_update(), devices=chosen, jit=jit, clients=clients
  )
  cohort = client_work.ClientBatches(
      (np.ones((4, 3, 2, 2), np.float32), np.ones((4, 3, 2), np.float32)),
      np.full(4, 10, np.int32),
  )
  # Whatever device is current where a round is called.
  with tf.device(BOTH[chosen != BOTH[1:]]):
    state, _ = program.next(program.initialize(), cohort)
  assert program.client_devices == tuple(d[-5:] for d in chosen)
  places = {
      leaf.backing_device[-5:] for leaf in tf.nest.flatten(state)
      if leaf.dtype.is_floating
  }
  assert places == {chosen[0][-5:]}


def test_configure_resolves_names():
  assert devices.configure('cpu:1, CPU:0') == BOTH[::-1]
  assert devices.configure(['/device:CPU:0']) == CPU
  if not tf.config.list_physical_devices('GPU'):
    assert devices.configure('auto') == CPU


@pytest.mark.parametrize('names, words', [
    ('CPU:7', "'CPU:7' is not one of"),
    ('CPU:0,CPU:0', 'at most once'),
    ('', 'is not one of'),
    ((), 'at least one'),
])
def test_configure_refuses_unknown_devices(names, words):
  with pytest.raises(ValueError, match=words):
    devices.configure(names)


def test_require_gpu_fails_without_one():
  if tf.config.list_physical_devices('GPU'):
    pytest.skip('this machine has a GPU')
  with pytest.raises(RuntimeError, match='require_gpu'):
    devices.configure(require_gpu=True)


@pytest.mark.parametrize('allowed', [True, False])
def test_float32_is_rounded_on_request_only(allowed):
  devices.configure('CPU:0', tensor_float_32=allowed)
  for _ in range(2):
    assert tf.config.experimental.tensor_float_32_execution_enabled() == allowed
    devices.configure('CPU:0')  # Leaves it.


@pytest.mark.parametrize('chosen, variable, gpus, expected', [
    (0, None, [], [1]), (4, None, [], []), (0, '2', [], []),
    (0, None, ['gpu'], []),
])
def test_operations_get_one_thread_unless_a_number_is_set(
    monkeypatch, chosen, variable, gpus, expected):
  settings = []
  threading = tf.config.threading
  monkeypatch.setattr(
      threading, 'get_intra_op_parallelism_threads', lambda: chosen)
  monkeypatch.setattr(
      threading, 'set_intra_op_parallelism_threads', settings.append)
  monkeypatch.setattr(tf.config, 'list_physical_devices', lambda _: gpus)
  monkeypatch.delenv('TF_NUM_INTRAOP_THREADS', raising=False)
  if variable:
    monkeypatch.setenv('TF_NUM_INTRAOP_THREADS', variable)
  devices._choose_threads()
  assert settings == expected


_MAPPED = """
import ctypes
from tff_localupdate.execution import devices

class Mallinfo(ctypes.Structure):
  _fields_ = [(name, ctypes.c_size_t) for name in (
      'arena', 'ordblks', 'smblks', 'hblks', 'hblkhd', 'usmblks', 'fsmblks',
      'uordblks', 'fordblks', 'keepcost')]

mallinfo = ctypes.CDLL(None).mallinfo2
mallinfo.restype = Mallinfo
devices.configure()
large = bytes(30 * 2 ** 20)
del large  # glibc would now take blocks up to this for small.
mapped = [mallinfo().hblkhd]
large = bytes(20 * 2 ** 20)
mapped.append(mallinfo().hblkhd)
del large
mapped.append(mallinfo().hblkhd)
print(mapped[1] - mapped[0] >= 20 * 2 ** 20, mapped[2] == mapped[0])
"""


def test_large_blocks_are_mapped_whatever_was_freed_before():
  if not hasattr(ctypes.CDLL(None), 'mallinfo2'):
    pytest.skip('not glibc 2.33 or later')
  # In a process of its own: a heap with free space in it serves these blocks.
  done = subprocess.run(
      [sys.executable, '-c', _MAPPED], capture_output=True, text=True,
      check=False,
  )
  assert done.stdout.split() == ['True', 'True'], done.stderr


def test_settings_of_glibc_are_left_alone(monkeypatch):
  monkeypatch.setattr(ctypes, 'CDLL', None)  # Nobody may ask for it.
  monkeypatch.setenv('MALLOC_ARENA_MAX', '2')
  devices.configure()


@pytest.mark.parametrize('chosen, words', [
    (dict(jit='maybe'), "jit: must be one of .*, got 'maybe'"),
    (dict(clients='all'), "clients: must be one of .*, got 'all'"),
    (dict(devices=()), r'devices: must be names .* got \(\)'),
    (dict(devices='GPU:0'), "devices: must be names .* got 'GPU:0'"),
    (dict(devices=('GPU:0',)), 'devices: must be names'),
])
def test_options_are_checked(chosen, words):
  with pytest.raises(ValueError, match=words):
    devices.ExecutionOptions(**chosen)


@pytest.mark.parametrize('chosen, expected', [
    (devices.HOST, True),
    (('/device:GPU:0',), False),
    (('/device:GPU:0', '/device:CPU:0'), True),
])
def test_one_cpu_is_enough_to_count(chosen, expected):
  assert devices.ExecutionOptions(chosen).use_cpu == expected
