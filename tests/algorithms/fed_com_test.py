"""FedCOM, beyond what `rival_transcriptions_test` checks of all."""

import numpy as np
import pytest

from baselines.algorithms import fed_com
from baselines.algorithms import fed_paq
from tests.algorithms import rival_cases


def test_factor_1_is_fed_paq():
  data = rival_cases.Data()
  points = []
  for process in (
      fed_com.build_fed_com(
          rival_cases.build_model(), quantization_levels=3, server_factor=1.0,
          **rival_cases.ARGUMENTS,
      ),
      fed_paq.build_fed_paq(
          rival_cases.build_model(), quantization_levels=3,
          **rival_cases.ARGUMENTS,
      ),
  ):
    *_, (state, _) = rival_cases.run(rival_cases.compiled(process), data, 3)
    points.append(rival_cases.point_of(state))
  np.testing.assert_array_equal(*points)


def test_factor_is_a_hyperparameter_above_0():
  process = fed_com.build_fed_com(
      rival_cases.build_model(), quantization_levels=3, **rival_cases.ARGUMENTS
  )
  state = process.initialize_with_seed(0)
  assert float(process.get_hparams(state)['server_factor']) == 10.0
  state = process.set_hparams(state, {'server_factor': 0.7})
  assert process.get_hparams(state) == {'step_size': 0.3, 'server_factor': 0.7}
  with pytest.raises(ValueError, match='server_factor must be .* found 0.0'):
    fed_com.build_fed_com(
        rival_cases.build_model(), quantization_levels=3, server_factor=0.0,
        **rival_cases.ARGUMENTS,
    )
