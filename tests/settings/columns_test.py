"""Columns are told apart, and each is told of."""

import pytest

from baselines.run import records
from baselines.settings import algorithms

_ALL = (
  *algorithms.TRAINING,
  *algorithms.DECAY,
  *algorithms.MESSAGES,
  *algorithms.CEAL,
  *records.REGRET_COLUMNS,
  *records.EVALUATION_COLUMNS,
  *records.MACHINE_COLUMNS,
)


def test_each_name_stands_for_one_column():
  assert len(set(_ALL)) == len(_ALL)


@pytest.mark.parametrize('name', _ALL)
def test_records_describe_each_column(name):
  assert name in records.__doc__
