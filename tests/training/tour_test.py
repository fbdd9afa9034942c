"""docs/tour.ipynb runs from top to bottom, as a user would run it."""

import json
import os
import pathlib
import time

import pytest

_WHY = 'scripts/test.sh installs the optional parts that run a notebook'
nbformat = pytest.importorskip('nbformat', reason=_WHY)
nbclient = pytest.importorskip('nbclient', reason=_WHY)
pytest.importorskip('ipykernel', reason=_WHY)
manager_lib = pytest.importorskip('jupyter_client.manager', reason=_WHY)

_TOUR = pathlib.Path(__file__).resolve().parents[2] / 'docs' / 'tour.ipynb'


def _cells(notebook):
  return [cell for cell in notebook.cells if cell.cell_type == 'code']


def test_outputs_are_not_kept():
  for cell in _cells(nbformat.read(_TOUR, as_version=4)):
    assert not cell.outputs and cell.execution_count is None


@pytest.fixture(autouse=True)
def _kernel(tmp_path, monkeypatch):
  """What a kernel writes stays in the folder of the test."""
  monkeypatch.setenv('PYTHONPATH', str(_TOUR.parents[1]))
  for name in ('JUPYTER_RUNTIME_DIR', 'IPYTHONDIR', 'TMPDIR'):
    monkeypatch.setenv(name, str(tmp_path))
  monkeypatch.delenv('MPLBACKEND', raising=False)  # The kernel's own.


def test_tour_trains_sweeps_and_plots(tmp_path):
  notebook = nbformat.read(_TOUR, as_version=4)
  started = time.monotonic()
  nbclient.NotebookClient(
      notebook, timeout=200, kernel_name='python3',
      resources={'metadata': {'path': str(tmp_path)}},
  ).execute()
  print(f'{time.monotonic() - started:.0f} s')  # A minute on two idle cores.
  outputs = [output for cell in _cells(notebook) for output in cell.outputs]
  shown = [output for output in outputs if 'data' in output]
  texts = [output['data'].get('text/plain', '') for output in shown]
  assert any("status='finished'" in text for text in texts)
  assert any('image/png' in output['data'] for output in shown)
  assert any('(64, 10)' in text for text in texts)
  printed = ''.join(o.get('text', '') for o in outputs if 'text' in o)
  assert "Unknown setting 'round'. Did you mean rounds?" in printed
  assert "theta would be ignored: algorithm is 'ceal'" in printed
  # A bar, not a line for every tenth of the run.
  assert '60/60' in printed and 'round 6/60' not in printed
  # The kernel has ended, and the temporary folders with it.
  assert not [name for name in os.listdir(tmp_path) if 'localupdate' in name]


_LONG = """
import baselines
baselines.run(
    rounds=100_000, rounds_per_evaluation=0, model='logistic', theta='1:2',
    clients_per_round=3, batch_size=4, tensorboard=False, output_dir='long',
)
"""


def _reply(client, request):
  """The reply to a request; others may come, to what the start asked."""
  while True:
    message = client.get_shell_msg(timeout=120)
    if message['parent_header'].get('msg_id') == request:
      return message['content']


def test_interrupted_cell_saves_the_run_and_leaves_the_kernel(tmp_path):
  manager, client = manager_lib.start_new_kernel(
      kernel_name='python3', cwd=str(tmp_path)
  )
  try:
    # What comes right after an error would be dropped otherwise.
    request = client.execute(_LONG, stop_on_error=False)
    rows = tmp_path / 'long' / 'metrics.csv'
    deadline = time.monotonic() + 120
    while not rows.exists() or rows.read_text().count('\n') < 10:
      assert time.monotonic() < deadline
      time.sleep(0.05)
    manager.interrupt_kernel()
    reply = _reply(client, request)
    assert (reply['status'], reply['ename']) == ('error', 'Interrupted')
    assert 'is saved in' in reply['evalue']
    status = json.loads((tmp_path / 'long' / 'status.json').read_text())
    assert status['status'] == 'interrupted' and status['round'] >= 8
    # The kernel still has what it had, and the saved run.
    request = client.execute("assert baselines.load('long')['round'][0] >= 8")
    assert _reply(client, request)['status'] == 'ok'
  finally:
    client.stop_channels()
    manager.shutdown_kernel(now=True)
