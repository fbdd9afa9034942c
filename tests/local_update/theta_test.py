"""Theta weights: reading, refusing, canonical text."""

import dataclasses
import math

import numpy as np
import pytest

from tff_localupdate import theta as theta_lib


@pytest.mark.parametrize(
    'text, weights',
    [
        ('1:1', (1.0,)),
        ('1:3', (1.0, 1.0, 1.0)),
        ('k1', (1.0,)),
        ('k3', (0.0, 0.0, 1.0)),
        ('0.5,0,2', (0.5, 0.0, 2.0)),
        (' 0.5, 0, 2 ', (0.5, 0.0, 2.0)),
        ('3,0', (3.0,)),
        ('1', (1.0,)),
        ('1,1,0,0', (1.0, 1.0)),
        ('1e-3, 0', (1e-3,)),
    ],
)
def test_parse_theta_reads(text, weights):
  assert theta_lib.parse_theta(text).weights == weights


@pytest.mark.parametrize(
    'text, message',
    [
        ('', "weights separated by commas, found ''"),
        ('ten', "found 'ten'"),
        ('1,,2', "found '1,,2'"),
        ('1:0', 'between 1 and 1000000 steps, found 0'),
        ('k0', 'between 1 and 1000000 steps, found 0'),
        ('1:-3', 'found -3'),
        ('1:9999999999', 'found 9999999999'),
        ('1:', "a whole number K, found '1:'"),
        ('k1.5', "a whole number K, found 'k1.5'"),
        ('2:5', "must start with '1:', found '2:5'"),
        (':5', "must start with '1:', found ':5'"),
        ('0,0', r'at least one positive weight, found \(0.0, 0.0\)'),
        ('-1', 'theta weight 1 must be finite and not negative, found -1.0'),
        ('1,nan', 'theta weight 2 must be finite and not negative, found nan'),
        ('inf', 'found inf'),
        ('10', "one weight alone, found '10': 1:K is K steps, 10,0 one step"),
        ('1.10', "one weight alone, found '1.10'"),
    ],
)
def test_parse_theta_refuses(text, message):
  with pytest.raises(ValueError, match=message) as error:
    theta_lib.parse_theta(text)
  assert 'theta' in str(error.value)


@pytest.mark.parametrize('weights', [(), (0.0,), (True,), ('1',), (1, None)])
def test_theta_refuses(weights):
  with pytest.raises(ValueError, match='theta'):
    theta_lib.Theta(weights)


def test_trailing_zeros_do_not_count():
  theta = theta_lib.Theta((0, 2, 0, 0))
  assert theta == theta_lib.Theta((0.0, 2.0))
  assert theta.num_steps == 2


def test_one_step_is_the_same_in_both_families():
  assert theta_lib.Theta.single(1) == theta_lib.Theta.ones(1)
  assert str(theta_lib.Theta.single(1)) == '1:1'


def test_number_types_become_floats():
  theta = theta_lib.Theta((np.float32(0.5), np.int64(2), 1))
  assert theta.weights == (0.5, 2.0, 1.0)
  assert all(type(w) is float for w in theta.weights)


def test_sum_is_correctly_rounded():
  assert theta_lib.Theta((0.1,) * 10).sum == 1.0
  assert theta_lib.Theta.ones(7).sum == 7.0


@pytest.mark.parametrize(
    'text',
    ['1:1', '1:10', 'k2', 'k10', '0.5,0,2', '2,2', '1e-07,0.1', '1e+30,0'],
)
def test_canonical_text_reads_back(text):
  theta = theta_lib.parse_theta(text)
  assert theta_lib.parse_theta(str(theta)) == theta


def test_canonical_text_does_not_depend_on_the_spelling():
  texts = {'1,1,1', '1.0,1,1,0', ' 1:3', '1:03'}
  assert {str(theta_lib.parse_theta(text)) for text in texts} == {'1:3'}


def test_random_weights_read_back():
  generator = np.random.default_rng(0)
  for _ in range(100):
    weights = generator.exponential(size=5) * 10.0 ** generator.integers(-9, 9)
    theta = theta_lib.Theta(tuple(weights))
    assert theta_lib.parse_theta(str(theta)) == theta
    assert math.isclose(theta.sum, weights.sum(), rel_tol=1e-15)


def test_theta_is_frozen_and_hashable():
  theta = theta_lib.Theta.ones(2)
  with pytest.raises(dataclasses.FrozenInstanceError):
    theta.weights = (1.0,)
  assert {theta: 1}[theta_lib.parse_theta('1,1')] == 1
