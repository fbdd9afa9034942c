"""Prints how many programs XLA compiled, after one run and after another.

  python -m tests.training.compile_counts DIR CASES

CASES is a JSON list of lists of flags; DIR is an empty folder. The runs of a
case differ in seeds, so in clients and examples. A line of output is the number
of programs that the first one compiled, then that of the second one.
"""

import json
import os
import pathlib
import sys
import warnings


def main(folder: str, cases: str) -> None:
  """Runs the cases one after the other; XLA writes what it compiles."""
  dumped = pathlib.Path(folder) / 'dumped'
  dumped.mkdir()
  os.environ['XLA_FLAGS'] = f'--xla_dump_to={dumped}'
  warnings.simplefilter('ignore')
  # TensorFlow reads the variable when it is imported.
  # pylint: disable=g-import-not-at-top
  from baselines.settings import commands
  from baselines.settings import flags
  from baselines.training import loop
  from baselines.training import plan
  from baselines.training import stopping
  from baselines.training import workbench as workbench_lib

  def compiled():
    return len({path.name.split('.')[0] for path in dumped.glob('module_*')})

  for number, case in enumerate(json.loads(cases)):
    workbench = workbench_lib.Workbench(report=lambda text: None)
    counts = [compiled()]
    for seed in (1, 2):
      parsed = flags.parse_experiment(
          [f'--sampling_seed={seed}', *case], '', commands.OutputConfig
      )
      output = pathlib.Path(folder) / f'{number}-{seed}'
      loop.run_experiment(
          plan.plan_run(parsed.config, str(output)), workbench,
          stopping.Interruption(), tensorboard=False,
      )
      counts.append(compiled())
    print(counts[1] - counts[0], counts[2] - counts[1], flush=True)


if __name__ == '__main__':
  main(*sys.argv[1:])
