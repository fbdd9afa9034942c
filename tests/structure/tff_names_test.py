"""Every TFF name that the code uses: listed, public, and really there.

TFF moves and deletes symbols between releases. When it is upgraded this list
is what has to be read against its release notes.
"""

import ast

from tests.structure import sources

_MODULE = 'tensorflow_federated'

# Modules that may go behind TFF's public names, and why.
_PRIVATE = {}

_NAMES = (
    'tff.CLIENTS',
    'tff.Computation',
    'tff.FederatedType',
    'tff.SERVER',
    'tff.SequenceType',
    'tff.StructType',
    'tff.TensorType',
    'tff.Type',
    'tff.aggregators.UnweightedAggregationFactory',
    'tff.aggregators.UnweightedMeanFactory',
    'tff.backends.mapreduce.consolidate_and_extract_local_processing',
    'tff.backends.mapreduce.get_map_reduce_form_for_computation',
    'tff.backends.mapreduce.get_state_initialization_computation',
    'tff.federated_broadcast',
    'tff.federated_computation',
    'tff.federated_eval',
    'tff.federated_map',
    'tff.federated_sum',
    'tff.federated_zip',
    'tff.framework.AsyncContext',
    'tff.framework.SyncContext',
    'tff.framework.deserialize_computation',
    'tff.framework.serialize_computation',
    'tff.framework.set_default_context',
    'tff.learning.models.FunctionalModel',
    'tff.learning.models.ModelWeights',
    'tff.learning.optimizers.LEARNING_RATE_KEY',
    'tff.learning.optimizers.Optimizer',
    'tff.learning.optimizers.check_weights_gradients_match',
    'tff.learning.optimizers.handle_indexed_slices_gradients',
    'tff.learning.templates.DistributionProcess',
    'tff.learning.templates.LearningProcess',
    'tff.learning.templates.LearningProcessOutput',
    'tff.simulation.datasets.cifar100.get_synthetic',
    'tff.simulation.datasets.cifar100.load_data',
    'tff.simulation.datasets.emnist.get_synthetic',
    'tff.simulation.datasets.emnist.load_data',
    'tff.simulation.datasets.shakespeare.get_synthetic',
    'tff.simulation.datasets.shakespeare.load_data',
    'tff.simulation.datasets.stackoverflow.get_synthetic',
    'tff.simulation.datasets.stackoverflow.get_synthetic_tag_counts',
    'tff.simulation.datasets.stackoverflow.get_synthetic_word_counts',
    'tff.simulation.datasets.stackoverflow.load_data',
    'tff.structure.Struct',
    'tff.structure.flatten',
    'tff.structure.name_list_with_nones',
    'tff.templates.AggregationProcess',
    'tff.templates.IterativeProcess',
    'tff.templates.MeasuredProcessOutput',
    'tff.tensorflow.computation',
    'tff.to_type',
    'tff.types.StructWithPythonType',
    'tff.types.contains',
    'tff.types.tensorflow_to_type',
    'tff.types.type_to_tf_tensor_specs',
)


def _aliases(tree):
  """Returns the names under which a file knows TFF."""
  return {
      alias.asname or alias.name
      for node in ast.walk(tree)
      if isinstance(node, ast.Import)
      for alias in node.names
      if alias.name == _MODULE
  }


def _dotted(node):
  """Returns `a.b.c` for such an expression, else None."""
  if isinstance(node, ast.Name):
    return node.id
  if isinstance(node, ast.Attribute):
    head = _dotted(node.value)
    return head and f'{head}.{node.attr}'
  return None


def _used_names(tree):
  """Returns all `tff.*` names of a file, each at its full length."""
  aliases = _aliases(tree)
  inner = {
      id(node.value) for node in ast.walk(tree)
      if isinstance(node, ast.Attribute)
  }
  for node in ast.walk(tree):
    if isinstance(node, ast.Attribute) and id(node) not in inner:
      head, _, rest = (_dotted(node) or '').partition('.')
      if head in aliases:
        yield f'tff.{rest}'


def _trees():
  for path in sources.find_files(*sources.PACKAGES):
    yield path.relative_to(sources.ROOT).as_posix(), sources.parse(path)


def test_names_used_are_the_ones_listed():
  used = sorted({name for _, tree in _trees() for name in _used_names(tree)})
  listing = '\n'.join(f'    {name!r},' for name in used)
  assert used == list(_NAMES), f'_NAMES has to be\n{listing}'


def test_names_exist():
  import tensorflow_federated as tff

  for name in _NAMES:
    found = tff
    for part in name.split('.')[1:]:
      assert hasattr(found, part), name
      found = getattr(found, part)


def test_no_private_module_is_imported():
  wrong = []
  for path, tree in _trees():
    for found in sources.find_imports(tree):
      if found.name.startswith(_MODULE + '.') and path not in _PRIVATE:
        wrong.append(f'{path}:{found.line} imports {found.name}')
    for name in _used_names(tree):
      if name.startswith('tff.python') and path not in _PRIVATE:
        wrong.append(f'{path} uses {name}')
  assert not wrong, '\n'.join(wrong)


def test_private_list_is_not_stale():
  trees = dict(_trees())
  for path in _PRIVATE:
    assert any(
        found.name.startswith(_MODULE + '.')
        for found in sources.find_imports(trees[path])
    )
