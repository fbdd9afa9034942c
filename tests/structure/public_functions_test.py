"""Public functions are annotated and documented, in full.

Ruff can ask this of all functions or of none; the rule is about what others
call, so private and nested functions are free.
"""

import ast

from tests.structure import sources

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def _public_functions():
  """Yields place and node of public functions and methods of public classes."""
  for path in sources.find_files(*sources.PACKAGES, 'scripts'):
    tree = sources.parse(path)
    classes = [n for n in tree.body if isinstance(n, ast.ClassDef)]
    owners = [tree, *(c for c in classes if not c.name.startswith('_'))]
    for owner in owners:
      for node in owner.body:
        if isinstance(node, _FUNCTIONS) and not node.name.startswith('_'):
          place = f'{path.relative_to(sources.ROOT)}:{node.lineno} {node.name}'
          yield place, node, owner is not tree


def _arguments(node, is_method):
  spec = node.args
  named = [*spec.posonlyargs, *spec.args]
  if is_method and named and named[0].arg in ('self', 'cls'):
    named = named[1:]
  return [*named, *spec.kwonlyargs, *filter(None, (spec.vararg, spec.kwarg))]


def test_arguments_and_result_are_annotated():
  wrong = [
      place
      for place, node, is_method in _public_functions()
      if node.returns is None
      or any(a.annotation is None for a in _arguments(node, is_method))
  ]
  assert not wrong, '\n'.join(wrong)


def test_functions_have_a_docstring():
  wrong = [
      place
      for place, node, is_method in _public_functions()
      # What a method of a base class does is documented there.
      if not is_method and not ast.get_docstring(node)
  ]
  assert not wrong, '\n'.join(wrong)
