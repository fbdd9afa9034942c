"""The import that takes long is announced."""

import os

from baselines.experiment import loading


def test_said_before_and_after(capsys, monkeypatch):
  monkeypatch.delenv('TF_CPP_MIN_LOG_LEVEL', raising=False)
  with loading.announced():
    before = capsys.readouterr().err
    assert os.environ['TF_CPP_MIN_LOG_LEVEL'] == '3'
  assert before == 'loading TensorFlow Federated ...\n'
  assert capsys.readouterr().err.startswith('loaded in ')


def test_log_level_of_the_user_is_kept(monkeypatch):
  monkeypatch.setenv('TF_CPP_MIN_LOG_LEVEL', '0')
  with loading.announced():
    assert os.environ['TF_CPP_MIN_LOG_LEVEL'] == '0'
