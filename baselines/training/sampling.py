"""Which clients take part in a round, and which examples they draw.

Pure functions of (seed, round, client): a resumed run, a run that prefetches
and a run with other learning rates see the same draws (the paper shares one
client sampling between all runs of a plot). Each draw has its own block of a
counter-based generator (Philox), so nothing is carried from round to round.
"""

import functools
import hashlib
import numbers
import threading
from typing import Optional, Union

import numpy as np

from tff_localupdate.local_update import epoch_draws

Integer = Union[int, np.integer]


def _check_integer(name: str, value: Integer, minimum: Optional[int]) -> int:
  if type(value) is not int:  # The rest takes as long as a small draw.
    # bool is an Integral in Python, but True as a seed is surely a mistake.
    if not isinstance(value, numbers.Integral) or isinstance(value, bool):
      raise TypeError(
          f'{name} must be an integer, got {value!r} of type'
          f' {type(value).__name__}.'
      )
    value = int(value)
  if minimum is not None and value < minimum:
    raise ValueError(f'{name} must be at least {minimum}, got {value}.')
  return value


@functools.lru_cache(maxsize=16)
def _key(purpose: str, seed: int) -> np.ndarray:
  digest = hashlib.blake2b(f'{purpose} {seed}'.encode(), digest_size=16)
  return np.frombuffer(digest.digest(), '<u8')


class _Reused(threading.local):
  """A generator for each thread, set to one block after another.

  Making one costs five times as much: NumPy asks the system for a seed that
  the key then replaces.
  """

  def __init__(self):
    self.bits = np.random.Philox(0)
    self.generator = np.random.Generator(self.bits)


_reused = _Reused()
_EMPTY_BUFFER = np.zeros(4, np.uint64)


def _counter(round_num: int, client_key: int, repeat: int = 0) -> np.ndarray:
  # The lowest counter word runs within the block: 2^64 numbers for each.
  return np.array([0, repeat, round_num, client_key], np.uint64)


def _generator(
    purpose: str, seed: int, round_num: int, client_key: int, repeat: int = 0
) -> np.random.Generator:
  """Returns the generator of these arguments, until this thread's next call."""
  _reused.bits.state = {
      'bit_generator': 'Philox',
      'state': {
          'counter': _counter(round_num, client_key, repeat),
          'key': _key(purpose, seed),
      },
      'buffer': _EMPTY_BUFFER,
      'buffer_pos': len(_EMPTY_BUFFER),
      'has_uint32': 0,
      'uinteger': 0,
  }
  return _reused.generator


def _client_draws(
    purpose: str,
    seed: Integer,
    round_num: Integer,
    client_key: Integer,
    repeat: Integer,
) -> np.random.Generator:
  """Returns the generator of a client's draws, with its place checked."""
  return _generator(
      purpose,
      _check_integer('seed', seed, None),
      _check_integer('round_num', round_num, 0),
      _check_integer('client_key', client_key, 0),
      _check_integer('repeat', repeat, 0),
  )


def sample_clients(
    seed: Integer,
    round_num: Integer,
    num_clients: Integer,
    clients_per_round: Integer,
) -> np.ndarray:
  """Draws the round's cohort I_t, uniformly without replacement.

  The other functions share these arguments, and raise the same errors. A seed
  is any integer, of Python or NumPy; 0 is a seed like others.

  Args:
    seed: The seed.
    round_num: The round t, not negative.
    num_clients: N, clients there are.
    clients_per_round: M, clients to draw.

  Returns:
    int64 [M], distinct positions in 0..N-1, in the order drawn. Independent
    over rounds.

  Raises:
    TypeError: If an argument is not an integer.
    ValueError: If one is out of range, or M is larger than N.
  """
  seed = _check_integer('seed', seed, None)
  round_num = _check_integer('round_num', round_num, 0)
  num_clients = _check_integer('num_clients', num_clients, 1)
  clients_per_round = _check_integer('clients_per_round', clients_per_round, 1)
  if clients_per_round > num_clients:
    raise ValueError(
        'clients_per_round must be at most the number of clients,'
        f' {num_clients}, got {clients_per_round}.'
    )
  generator = _generator('clients', seed, round_num, 0)
  return generator.choice(num_clients, clients_per_round, replace=False)


def sample_clients_iid(
    seed: Integer,
    round_num: Integer,
    num_clients: Integer,
    clients_per_round: Integer,
    weights: Optional[np.ndarray] = None,
) -> np.ndarray:
  """Draws the round's cohort independently from P, as the theory does.

  P is proportional to the weights [N], which are finite, not negative and not
  all 0; uniform by default. M may exceed N, and a client may occur more than
  once in the positions, int64 [M].
  """
  seed = _check_integer('seed', seed, None)
  round_num = _check_integer('round_num', round_num, 0)
  num_clients = _check_integer('num_clients', num_clients, 1)
  clients_per_round = _check_integer('clients_per_round', clients_per_round, 1)
  generator = _generator('iid clients', seed, round_num, 0)
  if weights is None:
    return generator.integers(num_clients, size=clients_per_round)
  weights = np.asarray(weights, np.float64)
  if (
      weights.shape != (num_clients,)
      or not np.isfinite(weights).all()
      or (weights < 0).any()
      or not weights.any()
  ):
    raise ValueError(
        f'weights must be {num_clients} finite numbers, none negative and one'
        f' positive, got {weights}.'
    )
  return generator.choice(
      num_clients, clients_per_round, p=weights / weights.sum()
  )


def client_generator(
    seed: Integer, round_num: Integer, slot: Integer
) -> np.random.Generator:
  """Returns the random numbers that the new client of a slot is made from.

  The slot is its place in the cohort, not negative.
  """
  seed = _check_integer('seed', seed, None)
  round_num = _check_integer('round_num', round_num, 0)
  slot = _check_integer('slot', slot, 0)
  return np.random.Generator(
      np.random.Philox(
          key=_key('new clients', seed), counter=_counter(round_num, slot)
      )
  )


def draw_epochs(
    seed: Integer,
    round_num: Integer,
    client_key: Integer,
    num_examples: Integer,
    num_epochs: Integer,
    batch_size: Integer,
    num_padded_steps: Integer,
    *,
    repeat: Integer = 0,
) -> epoch_draws.EpochDraws:
  """Draws a client's batches of E epochs, without replacement in an epoch.

  Returns the indices and the sizes of K_max batches; see `draw_examples`.
  """
  return epoch_draws.draw_epochs(
      _client_draws('epochs', seed, round_num, client_key, repeat),
      int(num_examples),
      num_epochs=num_epochs,
      batch_size=batch_size,
      num_padded_steps=num_padded_steps,
  )


def draw_examples(
    seed: Integer,
    round_num: Integer,
    client_key: Integer,
    num_examples: Integer,
    num_steps: Integer,
    batch_size: Integer,
    *,
    repeat: Integer = 0,
) -> np.ndarray:
  """Draws a client's mini-batches S_1..S_K: independent, with replacement.

  With replacement also across the steps of a round, as Theorem 3 needs; a
  client with fewer than B examples draws like any other.

  Args:
    seed: See `sample_clients`.
    round_num: See there.
    client_key: The client's digest (`ClientArrays.client_keys`), below 2^64.
    num_examples: n_i, examples that the client holds, at least 1.
    num_steps: K.
    batch_size: B.
    repeat: How often the client occurs earlier in the same cohort; draws of
      different repeats are independent.

  Returns:
    int64 [K, B], positions in 0..n_i-1.
  """
  num_examples = _check_integer('num_examples', num_examples, 1)
  num_steps = _check_integer('num_steps', num_steps, 1)
  batch_size = _check_integer('batch_size', batch_size, 1)
  generator = _client_draws('examples', seed, round_num, client_key, repeat)
  return generator.integers(num_examples, size=(num_steps, batch_size))
