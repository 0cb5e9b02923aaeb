"""The stand-in has the shape that the native module's stub file promises."""

from __future__ import annotations

import ast
import inspect

import pytest

from . import fake_native
from .stub_host import PACK

STUB = ast.parse((PACK / "rust/df11-py/df11_native.pyi").read_text())
FUNCTIONS = [node for node in STUB.body if isinstance(node, ast.FunctionDef)]
CLASSES = [node for node in STUB.body if isinstance(node, ast.ClassDef)]


@pytest.mark.parametrize("stub", FUNCTIONS, ids=lambda stub: stub.name)
def test_functions_take_the_same_arguments(stub: ast.FunctionDef) -> None:
    parameters = inspect.signature(getattr(fake_native, stub.name)).parameters.values()
    named = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    plain = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert plain == [a.arg for a in stub.args.args]
    assert named == [a.arg for a in stub.args.kwonlyargs]


@pytest.mark.parametrize("stub", CLASSES, ids=lambda stub: stub.name)
def test_classes_have_the_same_members(stub: ast.ClassDef) -> None:
    fake = getattr(fake_native, stub.name)
    assert [base.__name__ for base in fake.__bases__ if base is not object] == [ast.unparse(b) for b in stub.bases]
    for node in stub.body:
        if isinstance(node, ast.FunctionDef):
            assert callable(getattr(fake, node.name)), node.name
        elif isinstance(node, ast.AnnAssign):
            name = ast.unparse(node.target)
            assert name in {**fake.__dict__, **getattr(fake, "__annotations__", {})} or f"self.{name} =" in (
                inspect.getsource(fake)
            ), name
