"""`df11 inspect` sees published checkpoints as the definitions and the published releases say; no weights needed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from . import definitions, headers, name_sets
from .headers import Tensors

FIXTURES = headers.names()
BY_ID = definitions.by_id()
RELATIVES = name_sets.relatives()
KNOWN = [name for name, (id_, _) in RELATIVES.items() if "refused" not in BY_ID[id_]]
REFUSED = [name for name in RELATIVES if name not in KNOWN]
UNKNOWN = name_sets.near_misses() | name_sets.STRANGERS


def inspect(df11: Path, folder: Path, tensors: Tensors, *options: str, code: int = 0) -> dict[str, Any]:
    """What the command says of a sparse checkpoint with these tensors; `code` is the exit code that it must have."""
    source = folder / "model.safetensors"
    headers.write_sparse(source, headers.in_file_order(tensors))
    run = subprocess.run([df11, "inspect", "--json", *options, source], capture_output=True, text=True, check=False)
    source.unlink()
    assert run.returncode == code, run.stderr
    report: dict[str, Any] = json.loads(run.stdout)
    return report


@pytest.mark.parametrize("name", FIXTURES)
def test_published_release_is_predicted(name: str, df11: Path, tmp_path: Path) -> None:
    fixture = headers.load(name)
    source, release = fixture.source.tensors, headers.without_encoded_lengths(fixture.release.tensors)
    report = inspect(df11, tmp_path, source, "--header", "official")
    assert report["architecture"] == fixture.architecture
    assert report["prefix"] == definitions.strip_prefix(source)[0]
    predicted = [(tensor["name"], tensor["dtype"], tuple(tensor["shape"])) for tensor in report["tensors"]]
    assert predicted == [(tensor, *description) for tensor, description in release.items()]


@pytest.mark.parametrize("name", FIXTURES)
def test_units_are_those_of_the_release(name: str, df11: Path, tmp_path: Path) -> None:
    fixture = headers.load(name)
    release = fixture.release.tensors
    report = inspect(df11, tmp_path, fixture.source.tensors)
    suffix = ".sign_mantissa"
    assert {unit["name"]: [unit["weights"]] for unit in report["units"]} == {
        tensor.removesuffix(suffix): list(shape) for tensor, (_, shape) in release.items() if tensor.endswith(suffix)
    }
    definition = BY_ID[fixture.architecture]
    kept = definitions.apply_keys(definition, definitions.strip_prefix(fixture.source.tensors)[1])
    in_order = definitions.units(definition, kept)
    # The report names the tensors as the source does; no rule renames a compressed one.
    for unit in report["units"]:
        assert unit["tensors"] == [f"{report['prefix']}{module}.weight" for module in in_order[unit["name"]]]


@pytest.mark.parametrize("name", KNOWN)
def test_relative_is_recognised(name: str, df11: Path, tmp_path: Path) -> None:
    expected, tensors = RELATIVES[name]
    assert inspect(df11, tmp_path, tensors)["architecture"] == expected


@pytest.mark.parametrize("name", REFUSED)
def test_model_without_a_loader_is_refused_with_its_reason(name: str, df11: Path, tmp_path: Path) -> None:
    id_, tensors = RELATIVES[name]
    error = inspect(df11, tmp_path, tensors, code=3)["error"]
    assert error["code"] == "E_ARCH_REFUSED"
    assert BY_ID[id_]["refused"]["reason"] in error["message"]
    assert error["hint"] == BY_ID[id_]["refused"]["remedy"]


@pytest.mark.parametrize("name", UNKNOWN)
def test_neighbour_is_not_recognised(name: str, df11: Path, tmp_path: Path) -> None:
    assert inspect(df11, tmp_path, UNKNOWN[name], code=3)["error"]["code"] == "E_ARCH_UNKNOWN"


def test_units_of_krea2_that_hold_f32_stay_plain(df11: Path, tmp_path: Path) -> None:
    _, tensors = RELATIVES["krea2"]
    units = {unit["name"] for unit in inspect(df11, tmp_path, tensors)["units"]}
    assert units.isdisjoint({"tmlp", "tproj", "txtmlp"})
    assert units == set(definitions.units(BY_ID["Krea2"], tensors)) - {"tmlp", "tproj", "txtmlp"}


def test_flux2_alt_is_an_explicit_choice(df11: Path, tmp_path: Path) -> None:
    tensors = headers.load("flux2").source.tensors
    report = inspect(df11, tmp_path, tensors, "--arch", "Flux2-alt")
    assert report["architecture"] == "Flux2-alt"
    assert {unit["name"] for unit in report["units"]} == set(definitions.units(BY_ID["Flux2-alt"], tensors))


def test_later_folder_replaces_the_built_in_definition(df11: Path, tmp_path: Path) -> None:
    """Folders given earlier, and the copies in the program, give way to the last one that has the id."""
    text = (definitions.FOLDER / "flux2.toml").read_text()
    for folder, name in (("pack", "Pack"), ("user", "User")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "own.toml").write_text(text.replace('name = "FLUX.2 dev and klein"', f'name = "{name}"'))
    folders = [f"--architectures={tmp_path / folder}" for folder in ("pack", "user")]
    report = inspect(df11, tmp_path, headers.load("flux2").source.tensors, *folders)
    assert (report["architecture"], report["architecture_name"]) == ("Flux2", "User")
    assert report["definition"] == str(tmp_path / "user" / "own.toml")


def test_check_accepts_the_files_and_names_a_faulty_one(df11: Path, tmp_path: Path) -> None:
    def check(folder: Path) -> subprocess.CompletedProcess[str]:
        command = [str(df11), "architectures", "--check", f"--architectures={folder}"]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    assert check(definitions.FOLDER).returncode == 0
    lens = (definitions.FOLDER / "lens.toml").read_text()
    (tmp_path / "typo.toml").write_text(lens.replace("attributes", "attribute"))
    run = check(tmp_path)
    assert run.returncode != 0
    assert "typo.toml" in run.stdout + run.stderr
