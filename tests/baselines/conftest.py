"""What tests of the experiments share: a folder of their own for optima."""

import pytest


@pytest.fixture(scope='session', autouse=True)
def _own_cache(tmp_path_factory):
  """Keeps x* and f* away from the user's folder."""
  with pytest.MonkeyPatch.context() as patch:
    patch.setenv('XDG_CACHE_HOME', str(tmp_path_factory.mktemp('cache')))
    yield
