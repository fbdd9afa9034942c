"""The import that takes long is announced."""

import gc
import os
import sys

import pytest

from baselines import command


@pytest.fixture(autouse=True)
def _not_loaded(monkeypatch):
  monkeypatch.delitem(sys.modules, 'tensorflow_federated', raising=False)


def test_said_before_and_after(capsys, monkeypatch):
  monkeypatch.delenv('TF_CPP_MIN_LOG_LEVEL', raising=False)
  with command.announced():
    before = capsys.readouterr().err
    assert os.environ['TF_CPP_MIN_LOG_LEVEL'] == '3'
  assert before == 'loading TensorFlow Federated ...\n'
  assert capsys.readouterr().err.startswith('loaded in ')


def test_log_level_of_the_user_is_kept(monkeypatch):
  monkeypatch.setenv('TF_CPP_MIN_LOG_LEVEL', '0')
  with command.announced():
    assert os.environ['TF_CPP_MIN_LOG_LEVEL'] == '0'


@pytest.fixture(name='frozen')
def _frozen(monkeypatch):
  calls = []
  monkeypatch.setattr(gc, 'freeze', lambda: calls.append(gc.isenabled()))
  return calls


def test_import_is_not_searched_for_garbage(frozen):
  with command.announced():
    assert not gc.isenabled()
  assert gc.isenabled() and frozen == [False]
  with pytest.raises(ImportError):
    with command.announced():
      raise ImportError
  assert gc.isenabled() and len(frozen) == 1


def test_what_is_loaded_already_is_left_alone(monkeypatch, frozen, capsys):
  monkeypatch.setitem(sys.modules, 'tensorflow_federated', None)
  with command.announced():
    assert gc.isenabled()
  assert not frozen and not capsys.readouterr().err
