"""What all tests share: quiet TensorFlow on two CPU devices, and real data."""

import importlib.abc
import importlib.machinery
import os
import pathlib
import sys

import pytest

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_GPU_TESTS = 'tests/gpu'


def pytest_configure(config):
  """Settles what has to be settled before TensorFlow is imported."""
  os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
  if not any(_GPU_TESTS in arg for arg in config.args):
    # Numbers must not depend on the machine; tests/gpu is run by name.
    os.environ['CUDA_VISIBLE_DEVICES'] = '-1'
  sys.meta_path.insert(0, _TwoCpuDevices())


class _TwoCpuDevices(importlib.abc.MetaPathFinder, importlib.abc.Loader):
  """Splits the CPU into two logical devices when TensorFlow is imported.

  They stand for two accelerators. TensorFlow takes the setting before its
  first operation only, which may be in the import of a test module, and tests
  that do not need TensorFlow must not pay for importing it: so it is made by
  the import itself.
  """

  def __init__(self):
    self._loader = None

  def find_spec(self, fullname, path=None, target=None):
    if fullname != 'tensorflow' or self._loader is not None:
      return None
    spec = importlib.machinery.PathFinder.find_spec(fullname, path)
    if spec is not None:
      self._loader, spec.loader = spec.loader, self
    return spec

  def create_module(self, spec):
    return self._loader.create_module(spec)

  def exec_module(self, module):
    self._loader.exec_module(module)
    cpu, = module.config.list_physical_devices('CPU')
    module.config.set_logical_device_configuration(
        cpu, [module.config.LogicalDeviceConfiguration()] * 2
    )


@pytest.fixture(scope='session')
def shared_data() -> pathlib.Path:
  """The folder of real data beside the repository; skips where it is not."""
  folder = _ROOT.parent / 'shared' / 'data'
  if not folder.is_dir():
    pytest.skip('needs ../shared/data, which is not part of the repository')
  return folder


@pytest.fixture(scope='session', autouse=True)
def _own_cache(tmp_path_factory):
  """Keeps x* and f* away from the user's folder."""
  with pytest.MonkeyPatch.context() as patch:
    patch.setenv('XDG_CACHE_HOME', str(tmp_path_factory.mktemp('cache')))
    yield
