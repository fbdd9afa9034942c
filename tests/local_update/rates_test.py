"""Rates and losses are found in, and written to, the right places."""

import collections
from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from tff_localupdate.local_update import rates

Ordered = collections.OrderedDict


class Metrics(NamedTuple):
  loss_before_training: Any


def _own():
  return Ordered(
      client_learning_rate=tf.constant(0.5, tf.float64),
      server_learning_rate=tf.constant(0.3, tf.float64),
  )


def _stock():
  return Ordered(
      client_work=Ordered(learning_rate=tf.constant(0.5), other=tf.constant(7)),
      finalizer=Ordered(learning_rate=tf.constant(0.6)),
  )


def _numbers(structure):
  return [float(value) for value in tf.nest.flatten(structure)]


def test_own_process():
  access = rates.find_rates(_own())
  assert _numbers(access.get(_own())) == [0.5, 0.3]
  new = access.set(_own(), tf.constant(0.05, tf.float64), 0.27)
  assert list(new) == list(_own())
  assert _numbers(new) == pytest.approx([0.05, 0.27])
  assert all(value.dtype == tf.float64 for value in new.values())


def test_stock_process():
  access = rates.find_rates(_stock())
  assert _numbers(access.get(_stock())) == pytest.approx([0.5, 0.6])
  new = access.set(_stock(), tf.constant(0.05), tf.constant(0.54))
  assert _numbers(new) == pytest.approx([0.05, 7.0, 0.54])
  # Nothing was changed in place.
  assert _numbers(_stock()) == pytest.approx([0.5, 7.0, 0.6])


def test_stock_process_in_the_scale_of_gradients():
  access = rates.tff_learning_rates('gradient')
  assert _numbers(access.get(_stock())) == pytest.approx([0.5, 0.3])
  new = access.set(_stock(), tf.constant(0.05), tf.constant(0.27))
  assert _numbers(new) == pytest.approx([0.05, 7.0, 0.27 / 0.05])
  assert _numbers(access.get(new)) == pytest.approx([0.05, 0.27])


def test_dtypes_of_the_process_are_kept():
  new = rates.local_update_rates().set(
      Ordered(client_learning_rate=np.float32(1), server_learning_rate=1.0),
      tf.constant(0.1, tf.float64), tf.constant(0.9, tf.float64),
  )
  assert new['client_learning_rate'].dtype == tf.float32


def test_losses():
  assert rates.find_loss(Metrics(3.0)) == 3.0
  stock = Ordered(client_work=Ordered(train=Ordered(loss=2.0)))
  assert rates.find_loss(stock) == 2.0
  stock['client_work']['train']['num_examples'] = 3
  assert rates.find_loss(stock) == 2.0
  stock['client_work']['train']['num_examples'] = 0
  assert np.isnan(rates.find_loss(stock))


@pytest.mark.parametrize('unknown', [Ordered(), (), Ordered(client_work=())])
def test_unknown_structures_are_refused(unknown):
  with pytest.raises(ValueError, match='rates must be given'):
    rates.find_rates(unknown)
  with pytest.raises(ValueError, match='loss_fn must be given'):
    rates.find_loss(unknown)
  with pytest.raises(ValueError, match='server_rate'):
    rates.tff_learning_rates('model')
