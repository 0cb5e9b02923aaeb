"""For every architecture: our file equals the one that the official node writes, byte for byte."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from support.architectures import Architecture, all_architectures, without_sizes
from support.cli import CommandFailed, compress, run_json
from support.official import UNIT_FIELDS, compress_file
from support.synthetic import Checkpoint, expected_official, make_checkpoint, unit_modules
from support.tensors import Tensor, read_header, read_safetensors, write_safetensors

ARCHITECTURES = all_architectures()
# Nothing in a file tells these: the user chooses them.
CHOICES = {"Flux2-alt"}
# Recognised by sizes of over 50 million weights, half a minute of the official encoder each. They are compared with
# definitions that ask for no size; tests/architectures has the sizes.
HUGE = {"ErnieImage", "QwenImage21"}


@dataclass(frozen=True)
class Case:
    """One architecture's source checkpoint and the official file of it."""

    architecture: Architecture
    checkpoint: Checkpoint
    source: Path
    official: Path
    definitions: Path

    @property
    def options(self) -> list[object]:
        options: list[object] = ["--architectures", self.definitions]
        if self.architecture.id in CHOICES:
            options += ["--arch", self.architecture.id]
        if self.architecture.id == "Krea2":
            # The official tool rounds what this model has in F32; we do so only when asked to.
            options += ["--cast", "to-bf16"]
        return options


@pytest.fixture(scope="module", params=sorted(ARCHITECTURES))
def case(request: pytest.FixtureRequest, folder: Path) -> Iterator[Case]:
    definitions = folder / request.param
    definitions.mkdir()
    architecture = without_sizes(request.param, definitions) if request.param in HUGE else ARCHITECTURES[request.param]
    source, official = folder / "source.safetensors", folder / "official.safetensors"
    # A model of many small units has one at which the official encoder crashes now and then.
    for seed in range(50):
        checkpoint = make_checkpoint(architecture, seed)
        loaded = expected_official(architecture, checkpoint.tensors, checkpoint.prefix)
        try:
            compress_file(loaded, architecture.units, official)
            break
        except UnboundLocalError:
            continue
    yield Case(architecture, checkpoint, checkpoint.write(source), official, definitions)
    source.unlink()
    official.unlink()


def test_official_header_gives_the_official_bytes(case: Case, df11: Path, scratch: Path) -> None:
    ours = scratch / "ours.safetensors"
    report = compress(df11, case.source, ours, "--header", "official", *case.options)
    assert report["architecture"] == case.architecture.id
    assert {unit["name"] for unit in report["units"]} == set(unit_modules(case.architecture))
    if ours.read_bytes() != case.official.read_bytes():
        pytest.fail(explain(ours, case.official))


def test_the_official_file_is_verified(case: Case, df11: Path) -> None:
    for level in ("structure", "full"):
        report = run_json(df11, "verify", case.official, "--level", level)
        assert report["units"] == len(list(unit_modules(case.architecture)))
        assert not report["self_describing"]
    options = [option for option in case.options if option not in ("--cast", "to-bf16")]
    report = run_json(df11, "verify", case.official, "--against", case.source, *options)
    assert report["chunks_decoded"] == report["chunks"] > 0
    assert report["unseen"] == []


def test_restored_is_the_source(case: Case, df11: Path, scratch: Path) -> None:
    ours, restored = scratch / "ours.safetensors", scratch / "restored.safetensors"
    compress(df11, case.source, ours, *case.options)
    unseen = run_json(df11, "verify", ours)["unseen"]
    assert [seen.split(":")[0] for seen in unseen] == (
        ["other weights than the source had where they were rounded to BF16"] if "--cast" in case.options else []
    )
    if "--cast" in case.options:
        with pytest.raises(CommandFailed) as failure:
            run_json(df11, "restore", ours, "-o", restored)
        assert json.loads(failure.value.output)["error"]["code"] == "E_NOT_RESTORABLE"
        return
    assert run_json(df11, "restore", ours, "-o", restored)["exact"]
    assert restored.read_bytes() == case.source.read_bytes()


def test_self_describing_differs_in_the_header_and_kept_dtypes_only(case: Case, df11: Path, scratch: Path) -> None:
    ours_path = scratch / "ours.safetensors"
    compress(df11, case.source, ours_path, "--header", "self-describing", *case.options)
    ours, official = read_safetensors(ours_path), read_safetensors(case.official)
    assert set(ours) == set(official)
    architecture = case.architecture
    sources = {
        architecture.loaded_name(name.removeprefix(case.checkpoint.prefix)): tensor
        for name, tensor in case.checkpoint.tensors.items()
        if name.startswith(case.checkpoint.prefix)
    }
    for name, tensor in ours.items():
        in_unit = name.rpartition(".")[2] in UNIT_FIELDS
        # Outside the units the source's dtype and bytes stay; the official tool rounds F32 and F16 to BF16.
        expected = official[name] if in_unit else sources[name]
        assert tensor.equals(expected), name


def test_units_with_f32_weights_stay_plain_by_default(df11: Path, scratch: Path) -> None:
    checkpoint = make_checkpoint(ARCHITECTURES["Krea2"])
    source, target = checkpoint.write(scratch / "source.safetensors"), scratch / "ours.safetensors"
    report = compress(df11, source, target, "--header", "official")
    ours = read_safetensors(target)
    plain = {"tmlp", "txtmlp", "tproj"}
    assert {unit["name"] for unit in report["units"]} == set(unit_modules(ARCHITECTURES["Krea2"])) - plain
    for name, tensor in checkpoint.tensors.items():
        if name.split(".")[0] in plain and name.endswith(".weight") and name.count(".") == 2:
            assert tensor.dtype == "F32"
            assert name in ours
    assert not any(name.split(".")[0] in plain and name.endswith(".luts") for name in ours)


def test_the_layout_of_the_source_changes_nothing(df11: Path, scratch: Path) -> None:
    """Tensors in another order, at odd addresses, behind a header with spaces, foreign metadata and no padding."""
    checkpoint = make_checkpoint(ARCHITECTURES["Flux"])
    plain, odd = checkpoint.write(scratch / "plain.safetensors"), scratch / "odd.safetensors"
    backwards = {"odd": Tensor("U8", np.zeros(3, "|u1"))} | dict(reversed(checkpoint.tensors.items()))
    metadata = {"title": '\u4e2d "quoted" \\ \n', "": ""}
    write_safetensors(odd, backwards, metadata, separators=(" , ", " : "), padding=1)
    targets = [scratch / "plain-DF11.safetensors", scratch / "odd-DF11.safetensors"]
    for source, target in zip((plain, odd), targets, strict=True):
        compress(df11, source, target, "--header", "official")
    assert targets[0].read_bytes() == targets[1].read_bytes()


def test_units_that_are_left_are_what_the_official_tool_copies(df11: Path, scratch: Path) -> None:
    """Where its patterns do not name these units, the official tool writes the same file."""
    architecture = ARCHITECTURES["Flux"]
    checkpoint = make_checkpoint(architecture)
    infinite = f"{checkpoint.prefix}double_blocks.1.img_mlp.0.weight"
    assert checkpoint.tensors[infinite].dtype == "BF16"
    checkpoint.tensors[infinite].array.flat[5] = 0x7F80
    source, ours = checkpoint.write(scratch / "source.safetensors"), scratch / "ours.safetensors"
    with pytest.raises(CommandFailed) as failure:
        compress(df11, source, ours, "--header", "official")
    assert json.loads(failure.value.output)["error"]["code"] == "E_EXPONENT"
    report = compress(df11, source, ours, "--header", "official", "--keep-uncompressed")
    left = [unit["name"] for unit in report["left"]]
    assert "double_blocks.1" in left
    assert {unit["name"] for unit in report["units"]} == set(unit_modules(architecture)) - set(left)

    names = "|".join(map(re.escape, left))
    patterns = {f"(?!(?:{names})$){pattern}": attributes for pattern, attributes in architecture.units.items()}
    loaded = expected_official(architecture, checkpoint.tensors, checkpoint.prefix)
    official = scratch / "official.safetensors"
    compress_file(loaded, patterns, official)
    if ours.read_bytes() != official.read_bytes():
        pytest.fail(explain(ours, official))
    for file in (ours, official):
        assert run_json(df11, "verify", file, "--against", source)["unseen"] == []


def explain(ours: Path, official: Path) -> str:
    """Where two DF11 files differ."""
    mine, theirs = read_header(ours), read_header(official)
    if list(mine) != list(theirs):
        only = sorted(set(mine) ^ set(theirs))
        return f"other tensors or another order; in one file only: {only[:10]}"
    differing = [name for name in mine if mine[name] != theirs[name]]
    if differing:
        return "\n".join(f"{name}: {mine[name]}, official {theirs[name]}" for name in differing[:10])
    a, b = np.fromfile(ours, np.uint8), np.fromfile(official, np.uint8)
    if a.size != b.size or (a[:8] != b[:8]).any():
        return f"same tensors, {a.size} bytes with header {a[:8]}, official {b.size} with {b[:8]}"
    base = 8 + int(a[:8].view("<u8")[0])
    spans = {name: entry["data_offsets"] for name, entry in mine.items()}
    bad = [name for name, (i, j) in spans.items() if (a[base + i : base + j] != b[base + i : base + j]).any()]
    return f"bytes differ in {bad[:10]}" if bad else "bytes differ in the header's text"
