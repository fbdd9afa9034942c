"""NormEst, Algorithm 1 of CEAL: a vector with its norm within a factor."""

from collections.abc import Callable
import math
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tff_localupdate.ceal import schedule as schedule_lib


class NormEstimate(NamedTuple):
  """What NormEst returns.

  Attributes:
    vector: yhat, [d]; with high probability |yhat - y| <= tau_j <= |yhat|/4.
    stage: j, the stage whose test passed.
    num_samples: The number of samples of each client, over all stages.
  """

  vector: np.ndarray
  stage: int
  num_samples: int


def passes_test(norm: tf.Tensor, threshold: tf.Tensor) -> tf.Tensor:
  """Returns whether |yhat_j| >= 4 tau_j, a bool scalar.

  If it fails and the error is at most tau_j, then |y| <= 5 tau_j, which is
  B_(j+1). A norm that is NaN passes: a run that has diverged shall be seen to.

  Args:
    norm: |yhat_j|, a scalar.
    threshold: 4 tau_j, a scalar.
  """
  # Not `not norm < threshold`, which TensorFlow may turn into `>=`.
  return tf.logical_or(norm >= threshold, tf.math.is_nan(norm))


def estimate_norm(
    mean_of_samples: Callable[[int], np.ndarray],
    schedule: schedule_lib.Schedule,
    *,
    max_samples: int,
) -> NormEstimate:
  """Runs NormEst on its own, without any quantization.

      for j = first_stage, ...:
        yhat_j = mean over the M clients of s_j fresh samples of each
        if |yhat_j| >= 4 tau_j: return yhat_j

  CEAL itself runs it step by step, one stage in each exchange.

  Args:
    mean_of_samples: Maps s_j to yhat_j, [d]. Called with fresh samples.
    schedule: The schedules.
    max_samples: The number of samples that a client has at most.

  Returns:
    The `NormEstimate`.

  Raises:
    ValueError: If no test passes within `max_samples`.
  """
  stage, used = schedule.first_stage, 0
  while used + schedule.num_samples(stage) <= max_samples:
    used += schedule.num_samples(stage)
    vector = np.asarray(mean_of_samples(schedule.num_samples(stage)))
    threshold = schedule.threshold_factor * schedule.accuracy(stage)
    if passes_test(np.linalg.norm(vector), threshold):
      return NormEstimate(vector, stage, used)
    stage += 1
  raise ValueError(
      f'max_samples must be enough for a test to pass, found {max_samples} '
      f'with {used} used and {schedule.num_samples(stage)} for stage {stage}.'
  )


def oracle_epoch_length(
    gradient_norm: tf.Tensor,
    noise_scale: float,
    num_clients: int,
    max_length: int,
) -> tf.Tensor:
  """Returns t_k = ceil(2 sigma^2 / (M |grad f(x^(k))|^2)), at least 1.

  The length that an epoch would have if the norm were known, which motivates
  its estimation. That it is rounded up is inferred.

  Args:
    gradient_norm: |grad f(x^(k))|, a scalar; it may be 0.
    noise_scale: sigma.
    num_clients: M.
    max_length: Larger lengths are cut to this one.

  Returns:
    An int64 scalar.
  """
  square = tf.square(tf.cast(gradient_norm, tf.float64))
  length = tf.math.ceil(2.0 * noise_scale**2 / (num_clients * square))
  # `not >` for the NaN of a run that has diverged.
  in_range = tf.logical_and(length >= 1.0, length <= max_length)
  limit = tf.where(
      length < 1.0, tf.ones_like(length), tf.cast(max_length, tf.float64)
  )
  return tf.cast(tf.where(in_range, length, limit), tf.int64)


def measured_noise_scale(gradients: Any) -> float:
  """Returns sigma, measured on gradients of single queries at one point.

  sigma^2 = sum over i of |g_i - mean|^2 / (n - 1): an unbiased estimate of the
  expected squared norm of the noise.

  Args:
    gradients: [n, d], n at least 2.

  Raises:
    ValueError: If there are fewer than 2.
  """
  gradients = np.asarray(gradients, np.float64)
  if gradients.ndim != 2 or len(gradients) < 2:
    raise ValueError(
        'gradients must be a matrix of at least 2 rows, found shape '
        f'{gradients.shape}.'
    )
  noise = gradients - gradients.mean(axis=0)
  return math.sqrt(float(np.sum(noise**2)) / (len(gradients) - 1))
