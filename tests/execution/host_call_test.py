"""Two ways to call a compiled function: the same numbers."""

import numpy as np
import pytest
import tensorflow as tf

from tff_localupdate.execution import compiled_round


def _call(jit, one_program, *values):
  captured = tf.constant([[2.0, 0.5], [1.0, -1.0]])

  def compute(x, y):
    return [tf.matmul(x, captured) / y, tf.reduce_sum(x), x.shape[0] * y]

  build = tf.function(compute, jit_compile=jit, autograph=False)
  specs = [tf.TensorSpec(np.shape(v), tf.float32) for v in values]
  call = compiled_round.host_call(build, specs, one_program=one_program)
  return call(*[tf.constant(v, tf.float32) for v in values])


def test_one_operation_gives_the_same_bits():
  values = np.linspace(0.1, 2.0, 6).reshape(3, 2), 0.7
  plain, fast = _call(True, False, *values), _call(True, True, *values)
  assert len(plain) == len(fast) == 3
  for one, other in zip(plain, fast):
    np.testing.assert_array_equal(one, other)
  np.testing.assert_allclose(
      fast[0], values[0] @ [[2.0, 0.5], [1.0, -1.0]] / 0.7, rtol=1e-6
  )
  np.testing.assert_allclose(fast[2], 2.1, rtol=1e-6)


@pytest.mark.parametrize('one_program', [False, True])
def test_what_xla_cannot_compile_is_an_error_of_the_call(one_program):
  build = tf.function(
      lambda x: [tf.strings.as_string(x)], jit_compile=True, autograph=False
  )
  call = compiled_round.host_call(
      build, [tf.TensorSpec([2], tf.float32)], one_program=one_program
  )
  with pytest.raises(tf.errors.InvalidArgumentError, match='AsString'):
    call(tf.zeros([2]))
