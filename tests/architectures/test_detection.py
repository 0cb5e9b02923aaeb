"""Exactly one definition matches a model it is for, and none matches its neighbours."""

from __future__ import annotations

import pytest

from . import definitions, headers, name_sets
from .headers import Tensors

BY_ID = definitions.by_id()
FIXTURES = headers.names()
RELATIVES = name_sets.relatives()
NEAR_MISSES = name_sets.near_misses()


def found(source: Tensors) -> list[str]:
    return definitions.found(BY_ID, source)


@pytest.mark.parametrize("name", FIXTURES)
def test_published_checkpoint_matches_its_own_definition_only(name: str) -> None:
    fixture = headers.load(name)
    assert found(fixture.source.tensors) == [fixture.architecture]


@pytest.mark.parametrize("name", RELATIVES)
def test_relative_matches_its_own_definition_only(name: str) -> None:
    expected, tensors = RELATIVES[name]
    assert found(tensors) == [expected]


@pytest.mark.parametrize("name", [*NEAR_MISSES, *name_sets.STRANGERS])
def test_neighbour_matches_nothing(name: str) -> None:
    assert found((NEAR_MISSES | name_sets.STRANGERS)[name]) == []


def test_every_definition_with_rules_is_reached() -> None:
    reached = {headers.load(name).architecture for name in FIXTURES} | {expected for expected, _ in RELATIVES.values()}
    detected = {id_ for id_, definition in BY_ID.items() if "detect" in definition}
    assert reached == {id_ for id_ in detected if definitions.layout(BY_ID[id_]) == "comfyui"}
