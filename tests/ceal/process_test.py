"""CEAL against its transcription, and all that a run has to keep."""

import collections
import itertools
import warnings

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.ceal import problem
from tests.ceal import transcription
from tff_localupdate import execution
from tff_localupdate.ceal import process
from tff_localupdate.ceal import schedule
from tff_localupdate.compression import codes
from tff_localupdate.compression import random_seeds

CPU = ('/device:CPU:0',)
HORIZON = 400
STEP_SIZE = 1.5


def build(dtype='float64', stages=None, **changes):
  arguments = dict(
      horizon=HORIZON, batch_size=problem.BATCH_SIZE, step_size=STEP_SIZE
  )
  return process.build_ceal(
      problem.build_model(np.dtype(dtype)),
      stages or problem.build_schedule(),
      **{**arguments, **changes},
  )


def compiled(ceal, jit='off'):
  return execution.compile_process(ceal, devices=CPU, jit=jit)


def draws(seed, dtype=tf.float64):
  """The random numbers of a run, for the transcription."""

  @tf.function
  def of_client(exchange, client):
    exchange_seed = random_seeds.derive_seed(seed, exchange, 0)[0]
    path = random_seeds.derive_seed(exchange_seed, client)
    return random_seeds.draw_uniforms([problem.DIMENSION], path, dtype)

  @tf.function
  def of_server(exchange):
    path = random_seeds.derive_seed(seed, exchange, 1)
    return random_seeds.draw_uniforms([problem.DIMENSION], path, dtype)

  def uniforms(exchange, client):
    exchange = tf.constant(exchange)
    drawn = (
        of_server(exchange)
        if client is None
        else of_client(exchange, tf.constant(client))
    )
    return drawn.numpy().astype(np.float64)

  return uniforms


def transcribe(data, seed=0, dtype=tf.float64, **changes):
  arguments = {**problem.SCHEDULE, 'horizon': HORIZON, 'step_size': STEP_SIZE}
  return transcription.run(
      data, uniforms_fn=draws(seed, dtype), **{**arguments, **changes}
  )


@pytest.fixture(scope='module')
def data():
  return problem.Data()


@pytest.fixture(scope='module')
def plain(data):
  ceal = build(true_norm_fn=data.norm_fn())
  return ceal, compiled(ceal)


def compare(runs, expected, bits=True):
  """Compares run and transcription, exchange by exchange."""
  runs, expected = list(runs), list(expected)
  assert len(runs) == len(expected) > 3
  for (state, metrics), wanted in zip(runs, expected):
    np.testing.assert_allclose(
        problem.point_of(state), wanted.point, rtol=0.0, atol=1e-9
    )
    assert (int(state.epoch), int(state.stage), int(state.time_used)) == (
        wanted.epoch, wanted.stage, wanted.time
    )
    np.testing.assert_allclose(
        metrics.estimated_gradient_norm, wanted.norm, atol=1e-9
    )
    if bits:
      assert metrics.total_uplink_bits == wanted.uplink_bits
      assert metrics.downlink_bits == wanted.downlink_bits
  return runs


def test_x_to_1e9_and_bits_exactly_in_float64(data, plain):
  expected = list(transcribe(data))
  runs = compare(problem.run(*plain, data), expected)
  steps = [bool(metrics.stepped) for _, metrics in runs]
  assert True in steps and False in steps[:-1]
  state, last = runs[-1]
  assert int(state.total_uplink_bits) == sum(e.uplink_bits for e in expected)
  assert int(state.downlink_bits) == sum(e.downlink_bits for e in expected)
  assert not last.sent and int(state.time_used) == HORIZON
  for (before, _), (_, metrics) in zip(runs, runs[1:]):
    norm = np.linalg.norm(data.gradient(problem.point_of(before)))
    np.testing.assert_allclose(metrics.true_gradient_norm, norm, rtol=1e-9)


def test_bits_are_those_of_the_encoded_bytes_which_suffice_for_a_replica(
    data, plain
):
  """A client that reads bytes only follows the server exactly."""
  code = codes.SignedUnaryCode()
  point = np.zeros(problem.DIMENSION)
  stages = problem.build_schedule()
  stage = stages.first_stage
  runs = problem.run(*plain, data)
  for (state, metrics), wanted in zip(runs, transcribe(data)):
    encoded = [code.encode(message) for message in wanted.uplink]
    lengths = [len(transcription.unary(message)) for message in wanted.uplink]
    assert metrics.total_uplink_bits == sum(lengths)
    for data_bytes, length in zip(encoded, lengths):
      assert 0 <= 8 * len(data_bytes) - length < 8
    if metrics.stepped:
      broadcast = code.encode(wanted.downlink)
      assert 0 <= 8 * len(broadcast) - (int(metrics.downlink_bits) - 1) < 8
      step = stages.downlink_accuracy(stage) / np.sqrt(problem.DIMENSION)
      decoded = code.decode(broadcast, problem.DIMENSION)
      point = point - STEP_SIZE * step * decoded
    elif metrics.sent:
      assert metrics.downlink_bits == 1
      stage += 1
    np.testing.assert_allclose(
        problem.point_of(state), point, rtol=0.0, atol=1e-12
    )


@pytest.mark.parametrize(
    'changes, stages, transcribed',
    [
        (dict(grid='coordinate', reset_stage=True), {},
         dict(grid='coordinate', reset=True)),
        (dict(clip=False, broadcast_every_exchange=True),
         dict(uplink_resolution=0.3, downlink_resolution=0.2,
              failure_probability=0.4, threshold_factor=2.0),
         dict(clips=False, every=True, gamma0=0.3, phi0=0.2, delta=0.4,
              threshold_factor=2.0)),
        (dict(initial_point='sphere', seed=5), {}, dict(seed=5)),
    ],
)
def test_variants_against_the_transcription(
    data, changes, stages, transcribed
):
  ceal = build(stages=problem.build_schedule(**stages), **changes)
  program = compiled(ceal)
  if changes.get('initial_point') == 'sphere':
    point = problem.point_of(program.initialize())
    assert np.linalg.norm(point) == pytest.approx(1.0)
    transcribed = dict(transcribed, point=point)
  compare(problem.run(ceal, program, data), transcribe(data, **transcribed))


def test_float32_follows_until_a_draw_rounds_differently(
    data, record_property
):
  ceal = build('float32')
  runs = problem.run(ceal, compiled(ceal), data, dtype=np.float32)
  expected = list(transcribe(data, dtype=tf.float32))
  equal = 0
  for (state, metrics), wanted in zip(runs, expected):
    if metrics.total_uplink_bits != wanted.uplink_bits or (
        metrics.downlink_bits != wanted.downlink_bits
    ):
      break
    difference = np.abs(problem.point_of(state) - wanted.point).max()
    if difference > 1e-5:
      # Not less than a unit of the grid: a draw, and no drift.
      assert difference > 1e-3
      break
    equal += 1
  record_property('exchanges_until_a_draw_rounds_differently', equal)
  print(f'float32 follows float64 for {equal} of {len(expected)} exchanges')
  assert equal >= 3


def test_xla_and_plain_kernels_agree(data, plain):
  jit = compiled(plain[0], 'on')
  assert jit.jit
  runs = problem.run(plain[0], jit, data, exchanges=8)
  runs = compare(runs, itertools.islice(transcribe(data), 8))
  # One compilation for each number of rows, not of samples; kernels take all.
  assert plain[1].num_compiled == 1
  samples = {int(m.num_queries) for _, m in runs if m.sent}
  rows = {schedule.padded_size(s) for s in samples}
  assert jit.num_compiled == len(rows) < len(samples)


def test_resume_in_the_middle_of_an_epoch(data, plain):
  whole = list(problem.run(*plain, data))
  split = next(i for i, (_, m) in enumerate(whole) if not m.stepped) + 1
  saved = tf.nest.map_structure(np.asarray, whole[split - 1][0])
  rest = list(problem.run(*plain, data, saved))
  assert len(rest) == len(whole) - split > 0
  for resumed, expected in zip(rest, whole[split:]):
    tf.nest.map_structure(np.testing.assert_array_equal, resumed, expected)


def test_another_seed_needs_no_other_process(data, plain):
  ceal, program = plain
  state = ceal.initialize_with_seed(8)
  compare(problem.run(ceal, program, data, state), transcribe(data, seed=8))
  with pytest.raises(ValueError, match='seed must be a whole number'):
    ceal.initialize_with_seed(0.5)


@pytest.mark.parametrize('size', [1, 2, 99, 100, 101])
def test_cohorts(size):
  data = problem.Data(num_clients=size)
  changes = dict(num_clients=size, sample_constant=0.03 * size)
  ceal = build(stages=problem.build_schedule(**changes), horizon=60)
  expected = transcribe(data, horizon=60, **changes)
  runs = compare(problem.run(ceal, compiled(ceal), data), expected)
  assert all(metrics.clients == size for _, metrics in runs)


@pytest.mark.parametrize(
    'code', [codes.EliasGammaCode(), codes.RunLengthCode()]
)
def test_other_codes_change_the_bits_only(data, code):
  ceal = build(code=code)
  expected = list(transcribe(data))
  runs = compare(
      problem.run(ceal, compiled(ceal), data), expected, bits=False
  )
  for (_, metrics), wanted in zip(runs, expected):
    lengths = [int(code.length(tf.constant(m))) for m in wanted.uplink]
    assert metrics.total_uplink_bits == sum(lengths)
    if metrics.stepped:
      length = code.length(tf.constant(wanted.downlink))
      assert metrics.downlink_bits == 1 + int(length)


def test_oracle_takes_a_step_in_each_exchange(data):
  ceal = build(epoch_length='oracle', true_norm_fn=data.norm_fn())
  program = compiled(ceal)
  state, norms = program.initialize(), []
  for after, metrics in problem.run(ceal, program, data):
    norm = np.linalg.norm(data.gradient(problem.point_of(state)))
    length = max(1, int(np.ceil(2 * 0.25 / (10 * norm**2))))
    left = HORIZON - int(state.time_used)
    assert metrics.num_queries == min(length, left)
    assert bool(metrics.stepped) == (length <= left) == bool(metrics.sent)
    norms.append(norm)
    state = after
  assert len(norms) > 3 and norms[-1] < 0.5 * norms[0]


def test_horizon_shorter_than_the_first_stage_warns_and_sends_nothing(data):
  with pytest.warns(UserWarning, match='horizon 2 is shorter than the 5 samp'):
    ceal = build(horizon=2, stages=problem.build_schedule(first_stage=3))
  program = compiled(ceal)
  state = program.initialize()
  assert ceal.samples_needed(state) == 0 and int(state.next_queries) == 2
  (state, metrics), = problem.run(ceal, program, data)
  assert int(metrics.num_queries) == 2 and not metrics.sent
  assert int(state.total_uplink_bits) == int(state.downlink_bits) == 0
  assert not np.any(problem.point_of(state)) and ceal.is_finished(state)


def test_long_enough_horizon_does_not_warn():
  with warnings.catch_warnings():
    warnings.simplefilter('error', UserWarning)
    build()


def test_run_that_sticks_is_reported(data):
  # Rounding alone keeps the mean above the threshold, on a coarse grid.
  stages = problem.build_schedule(
      noise_scale=10.0, sample_constant=1e-5, first_stage=5
  )
  ceal = build(stages=stages, grid='coordinate', step_size=0.01)
  runs = list(problem.run(ceal, compiled(ceal), data, exchanges=20))
  counts = [int(metrics.passes_by_rounding) for _, metrics in runs]
  assert max(counts) >= 4
  last = runs[-1][1]
  assert last.rounding_norm > last.threshold


def test_too_few_samples_are_seen(data, plain):
  ceal, program = plain
  state = program.initialize()
  needed = ceal.samples_needed(state)
  state, metrics = program.next(state, data.cohort(0, needed - 1, needed - 1))
  assert metrics.clients_not_sent == 10
  assert np.all(np.isnan(problem.point_of(state)))


def test_runs_in_a_context_and_has_hparams(data, plain):
  ceal, program = plain
  execution.set_default_context(devices=CPU)
  state = ceal.set_hparams(
      ceal.initialize(), collections.OrderedDict(step_size=0.25)
  )
  assert float(ceal.get_hparams(state)['step_size']) == 0.25
  cohort = data.cohort(0, ceal.samples_needed(state), ceal.rows_needed(state))
  clients = [
      tf.nest.map_structure(lambda leaf, m=m: leaf[m], cohort)
      for m in range(10)
  ]
  after, metrics = ceal.next(state, clients)
  expected, _ = program.next(state, cohort)
  np.testing.assert_allclose(
      problem.point_of(after), problem.point_of(expected), rtol=1e-12
  )
  weights = ceal.get_model_weights(after)
  assert isinstance(weights, tff.learning.models.ModelWeights)
  with pytest.raises(ValueError, match='hparams must be one of step_size'):
    ceal.set_hparams(state, {'rate': 1.0})
  with pytest.raises(ValueError, match='step_size must be .* found 0'):
    ceal.set_hparams(state, {'step_size': 0.0})


def test_initial_states_differ_by_their_seed(plain):
  ceal, _ = plain
  state = ceal.initialize_with_seed(2**40)
  assert state.seed.dtype == tf.int64 and int(state.seed) == 2**40
  with pytest.raises(ValueError, match='seed must be'):
    ceal.initialize_with_seed(0.5)


def test_step_size_keeps_its_dtype():
  ceal = process.build_ceal(
      problem.build_model(np.float32), problem.build_schedule(), horizon=9,
      batch_size=2, step_size=1.0,
  )
  state = ceal.set_hparams(
      ceal.initialize_with_seed(1), {'step_size': np.float64(0.1)}
  )
  assert state.step_size.dtype == tf.float32
  assert state.step_size.numpy() == np.float32(0.1)


@pytest.mark.parametrize(
    'changes, error, message',
    [
        (dict(stages='x'), TypeError, 'schedule must be of type Schedule'),
        (dict(horizon=0), ValueError, 'horizon must be a whole number'),
        (dict(batch_size=0), ValueError, 'batch_size must be a whole number'),
        (dict(step_size=0.0), ValueError, 'step_size must be a finite number'),
        (dict(initial_point='x'), ValueError, 'initial_point must be one of'),
        (dict(grid='x'), ValueError, 'grid must be one of'),
        (dict(code=3), TypeError, 'code must be of type Code'),
        (dict(seed=1.5), ValueError, 'seed must be a whole number'),
        (dict(epoch_length='oracle'), ValueError, 'true_norm_fn must be given'),
    ],
)
def test_wrong_arguments(changes, error, message):
  with pytest.raises(error, match=message):
    build(**changes)


def test_wrong_dtypes():
  model = problem.build_model(np.float32)
  arguments = dict(horizon=9, batch_size=2, step_size=1.0)
  with pytest.raises(ValueError, match='dtype float64, all of one, found fl'):
    process.build_ceal(
        model, problem.build_schedule(), dtype='float64', **arguments
    )
  with pytest.raises(ValueError, match='dtype must be one of'):
    process.build_ceal(
        model, problem.build_schedule(), dtype='int32', **arguments
    )
  with pytest.raises(TypeError, match='model must be of type FunctionalModel'):
    process.build_ceal(None, problem.build_schedule(), **arguments)
