"""x* and f* to 1e-10, solved once."""

import gzip

import numpy as np
import pytest

from baselines.regret import objectives
from baselines.regret import optimum


def _logistic(l2_strength=0.5, seed=0, scale=1.0):
  generator = np.random.default_rng(seed)
  return objectives.SoftmaxRegression(
      scale * generator.standard_normal((60, 6)),
      generator.integers(4, size=60), 4, l2_strength,
  )


def test_least_squares_have_the_closed_form():
  generator = np.random.default_rng(0)
  features = generator.standard_normal((50, 4))
  labels = generator.standard_normal(50)
  found = optimum.solve(objectives.LeastSquares(features, labels, 0.1))
  expected, residual, *_ = np.linalg.lstsq(features, labels, rcond=None)
  np.testing.assert_allclose(found.point, expected, atol=1e-12)
  assert found.value == pytest.approx(0.1 * residual[0] / 50, rel=1e-12)
  assert found.gradient_norm < 1e-14


def test_two_points_in_two_classes_have_their_scalar_solution():
  # By symmetry W = [[-u, u]]: u solves 0.5 u = 1 / (1 + exp(2 u)).
  f = objectives.SoftmaxRegression([[-1.0], [1.0]], [0, 1], 2, 0.5)
  low, high = 0.0, 1.0
  for _ in range(100):
    middle = (low + high) / 2
    falls_short = 0.5 * middle < 1 / (1 + np.exp(2 * middle))
    low, high = (middle, high) if falls_short else (low, middle)
  found = optimum.solve(f)
  np.testing.assert_allclose(found.point, [-low, low], atol=1e-10)
  expected = np.log1p(np.exp(-2 * low)) + 0.5 * low**2
  assert found.value == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize('l2_strength, scale', [
    (0.5, 1.0), (1e-4, 1.0), (0.5, 100.0), (1e-3, 100.0),
])
def test_gradient_vanishes_and_no_direction_goes_down(l2_strength, scale):
  f = _logistic(l2_strength, scale=scale)
  found = optimum.solve(f)
  norm = np.linalg.norm(f.gradient(found.point))
  assert norm == pytest.approx(found.gradient_norm, abs=1e-14)
  # mu-strong convexity: |x - x*| <= |grad f| / mu.
  assert norm / l2_strength <= 1e-10
  assert norm**2 / (2 * l2_strength) <= 1e-10
  around = found.point + 1e-3 * np.random.default_rng(1).standard_normal(
      (20, 24)
  )
  assert np.all(f.values(around) > found.value)


def test_mnist_logistic_has_the_optimum_of_section_8(shared_data):
  # f* = 1.664, |W*| = 1.21, f(0) - f* = 0.638, |grad f(0)| = 1.07, on the test
  # images.
  def read(name, skip):
    with gzip.open(shared_data / 'mnist' / name) as stream:
      return np.frombuffer(stream.read(), np.uint8, offset=skip)

  images = read('t10k-images-idx3-ubyte.gz', 16).reshape(-1, 784) / 255.0
  labels = read('t10k-labels-idx1-ubyte.gz', 8)
  f = objectives.SoftmaxRegression(images, labels, 10, 0.5)
  found = optimum.solve(f)
  zero = np.zeros(7840)
  assert found.value == pytest.approx(1.664, abs=1e-3)
  assert np.linalg.norm(found.point) == pytest.approx(1.21, abs=1e-2)
  assert f.values(zero[np.newaxis])[0] - found.value == pytest.approx(
      0.638, abs=1e-3
  )
  assert np.linalg.norm(f.gradient(zero)) == pytest.approx(1.07, abs=1e-2)


def test_without_l2_there_need_not_be_a_minimum():
  with pytest.raises(ValueError, match='l2_strength must be above 0'):
    optimum.solve(_logistic(0.0))


def test_solver_that_does_not_arrive_says_so(monkeypatch):
  monkeypatch.setattr(optimum, '_NEWTON_STEPS', 1)
  message = r'No point with \|grad f\| <= 5e-11'
  with pytest.raises(ArithmeticError, match=message):
    optimum.solve(_logistic())


def _no_solving(monkeypatch):
  def fail(unused):
    raise RuntimeError('solved again')

  monkeypatch.setattr(optimum, 'solve', fail)


def test_second_call_reads_the_file(tmp_path, monkeypatch):
  first = optimum.load_or_solve(_logistic(), tmp_path / 'cache')
  assert len(list((tmp_path / 'cache').iterdir())) == 1
  _no_solving(monkeypatch)
  second = optimum.load_or_solve(_logistic(), tmp_path / 'cache')
  assert np.array_equal(first.point, second.point)
  assert first[1:] == second[1:]


@pytest.mark.parametrize('other', [
    _logistic(seed=1), _logistic(0.25), _logistic(scale=1 + 1e-12),
])
def test_other_data_or_parameters_have_another_file(tmp_path, other):
  path = optimum.cache_path(_logistic(), tmp_path)
  assert optimum.cache_path(other, tmp_path) != path


@pytest.mark.parametrize('damage', [
    lambda data: b'',
    lambda data: data[: len(data) // 2],
    lambda data: data[:200] + bytes([data[200] ^ 1]) + data[201:],
])
def test_damaged_file_is_made_anew(tmp_path, damage):
  expected = optimum.load_or_solve(_logistic(), tmp_path)
  path = optimum.cache_path(_logistic(), tmp_path)
  path.write_bytes(damage(path.read_bytes()))
  found = optimum.load_or_solve(_logistic(), tmp_path)
  assert np.array_equal(found.point, expected.point)
  with np.load(path) as archive:
    assert np.array_equal(archive['point'], expected.point)


def test_no_folder_keeps_nothing():
  found = optimum.load_or_solve(_logistic(), None)
  assert np.array_equal(found.point, optimum.solve(_logistic()).point)


def test_default_folder_is_the_users_cache(monkeypatch):
  monkeypatch.setenv('XDG_CACHE_HOME', '/some/cache')
  assert str(optimum.default_folder()) == '/some/cache/tff_localupdate'
  for unset in (lambda: monkeypatch.setenv('XDG_CACHE_HOME', ''),
                lambda: monkeypatch.delenv('XDG_CACHE_HOME')):
    unset()
    monkeypatch.setenv('HOME', '/home of me')
    assert str(optimum.default_folder()) == '/home of me/.cache/tff_localupdate'


def test_folder_that_cannot_be_written_costs_only_time(tmp_path):
  (tmp_path / 'file').touch()
  found = optimum.load_or_solve(_logistic(), tmp_path / 'file' / 'folder')
  assert np.array_equal(found.point, optimum.solve(_logistic()).point)


def test_user_without_a_home_has_no_folder(monkeypatch):
  monkeypatch.setenv('XDG_CACHE_HOME', '~no-such-user/cache')
  assert optimum.default_folder() is None


def test_cache_with_any_flipped_bit_is_made_anew(tmp_path):
  f = objectives.LeastSquares(np.eye(3), np.arange(3.0))
  expected = optimum.load_or_solve(f, tmp_path)
  path = optimum.cache_path(f, tmp_path)
  content = path.read_bytes()
  start = content.index(b'PK\x01\x02')
  for place in range(start, start + 46):
    for bit in range(8):
      damaged = bytearray(content)
      damaged[place] ^= 1 << bit
      path.write_bytes(bytes(damaged))
      found = optimum.load_or_solve(f, tmp_path)
      assert found.value == expected.value
