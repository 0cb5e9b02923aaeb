"""Plans: what they say, and that one is used once."""

from __future__ import annotations

import os
from pathlib import Path

import df11_native
import pytest

from support.tensors import Tensors

from .conftest import Folder

UNITS = ["double_blocks.0", "single_blocks.0"]


def test_plan_says_what_it_will_do(folder: Folder, tensors: Tensors) -> None:
    plan = folder.plan()
    assert (plan.source, plan.target) == (str(folder.source), str(folder.target))
    assert (plan.architecture, plan.units) == ("Flux", len(UNITS))
    report = plan.report()
    assert report["schema"] == "df11.plan/1"
    assert sorted(unit["name"] for unit in report["units"]) == UNITS
    inside = {name for unit in report["units"] for name in unit["tensors"]}
    assert inside == {name for name in tensors if name.startswith(tuple(UNITS)) and name.endswith(".weight")}
    # Meanwhile others write to the disk.
    assert report | {"free_bytes": 0} == df11_native.inspect(folder.source) | {"free_bytes": 0}
    assert report["free_bytes"] > 0
    assert folder.is_clean()


def test_paths_are_strings_or_path_like(folder: Folder) -> None:
    target = folder.path / "other.safetensors"
    for kind in (str, Path):
        plan = df11_native.plan(kind(folder.source), kind(target), definitions=[kind(folder.path)])
        assert plan.target == str(target)
        assert df11_native.inspect(kind(folder.source))["target"] == str(folder.target)


def test_a_plan_is_started_once(folder: Folder) -> None:
    plan = folder.plan()
    df11_native.start(plan).result()
    for _ in range(2):
        with pytest.raises(df11_native.Df11Error) as caught:
            df11_native.start(plan)
        assert type(caught.value) is df11_native.Df11Error
        assert caught.value.code == "E_OPTION"
        assert caught.value.hint and caught.value.hint in str(caught.value)
    assert plan.report()["target"] == str(folder.target), "what it says stays"


def test_definitions_add_an_architecture(folder: Folder) -> None:
    added = folder.path / "toys"
    added.mkdir()
    text = Path(os.path.dirname(__file__), "../../architectures/flux.toml").read_text()
    (added / "flux.toml").write_text(text.replace('id = "Flux"', 'id = "Toy"').replace("img_in.weight", "toy.weight"))
    built_in = {known["id"] for known in df11_native.architectures()}
    known = {known["id"]: known for known in df11_native.architectures([added])}
    assert set(known) - built_in == {"Toy"}
    assert known["Toy"]["supported"] and known["Toy"]["origin"] == str(added / "flux.toml")
    assert set(known["Toy"]) == {"id", "name", "layout", "variant_of", "supported", "reason", "loader", "origin"}
    assert df11_native.inspect(folder.source, definitions=[added])["architecture"] == "Flux"
