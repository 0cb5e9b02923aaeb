"""Where the result goes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from comfy_node.errors import NodeError
from comfy_node.service import placement, sources
from comfy_node.service.placement import Placement

from .stub_host import StubHost


def place(host: StubHost, choice: str, file_name: str = "new.safetensors", if_exists: str = "skip") -> Placement:
    return placement.place(host, sources.find(host, choice), file_name, if_exists)


@pytest.fixture
def read_only(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Folders in which no file can be made. Permission bits would not stop root, who runs many test machines."""
    folders: list[Path] = []
    original = placement.tempfile.TemporaryFile

    def attempt(dir: str) -> object:
        if Path(dir) in folders:
            raise PermissionError(13, "read-only", dir)
        return original(dir=dir)

    monkeypatch.setattr(placement.tempfile, "TemporaryFile", attempt)
    return folders


def test_next_to_the_source(host: StubHost) -> None:
    source = host.add("diffusion_models", "sub/deep/a.safetensors")
    target = source.with_name("new.safetensors")
    assert place(host, "sub/deep/a.safetensors") == Placement(str(target), "")
    assert placement.listed_name(host, str(target)) == os.path.join("sub", "deep", "new.safetensors")
    assert sorted(source.parent.iterdir()) == [source], "trying the folder left something"


def test_next_to_a_source_in_another_root(host: StubHost, tmp_path: Path) -> None:
    extra = tmp_path / "big disk"
    host.kinds["diffusion_models"].append(extra)
    host.add("diffusion_models", "a.safetensors")
    found = place(host, "a.safetensors")
    assert found.target == str(extra / "new.safetensors")
    assert placement.listed_name(host, found.target) == "new.safetensors"


def test_in_the_folder_of_a_link(host: StubHost, tmp_path: Path) -> None:
    blob = tmp_path / "cache" / "blob"
    blob.parent.mkdir()
    blob.write_bytes(b"model")
    link = host.models / "diffusion_models" / "a.safetensors"
    link.symlink_to(blob)
    assert place(host, "a.safetensors").target == str(link.with_name("new.safetensors"))


def test_a_checkpoint_goes_to_the_diffusion_models(host: StubHost) -> None:
    host.add("checkpoints", "sub/a.safetensors")
    assert place(host, "checkpoints/sub/a.safetensors") == Placement(
        str(host.models / "diffusion_models" / "new.safetensors"), ""
    )


def test_a_read_only_folder_falls_back_to_the_output_folder(host: StubHost, read_only: list[Path]) -> None:
    source = host.add("diffusion_models", "a.safetensors")
    read_only.append(source.parent)
    found = place(host, "a.safetensors")
    assert found.target == str(host.out / "diffusion_models" / "new.safetensors")
    assert found.note.startswith(f"{source.parent} cannot be written, so the file is in {host.out}")
    assert placement.listed_name(host, found.target) == "new.safetensors"


def test_a_checkpoint_falls_back_too(host: StubHost, read_only: list[Path]) -> None:
    host.add("checkpoints", "a.safetensors")
    read_only.append(host.models / "diffusion_models")
    assert place(host, "checkpoints/a.safetensors").target == str(host.models / "unet" / "new.safetensors")
    read_only.append(host.models / "unet")
    assert place(host, "checkpoints/a.safetensors").target == str(host.out / "diffusion_models" / "new.safetensors")


def test_a_result_in_a_read_only_folder_is_found_again(host: StubHost, read_only: list[Path]) -> None:
    source = host.add("diffusion_models", "a.safetensors")
    result = host.add("diffusion_models", "new.safetensors")
    read_only.append(source.parent)
    assert place(host, "a.safetensors").target == str(result)
    with pytest.raises(NodeError, match="A loader would read"):
        place(host, "a.safetensors", if_exists="replace")


def test_says_so_when_nothing_can_be_written(host: StubHost, read_only: list[Path]) -> None:
    source = host.add("diffusion_models", "a.safetensors")
    read_only += [source.parent, host.out / "diffusion_models"]
    with pytest.raises(NodeError, match="No folder for the result can be written: "):
        place(host, "a.safetensors")


def test_refuses_a_name_under_which_a_loader_reads_another_file(host: StubHost) -> None:
    host.add("diffusion_models", "a.safetensors")
    shadow = host.add("diffusion_models", "new.safetensors", root=0)
    with pytest.raises(NodeError, match="A loader would read") as refusal:
        place(host, "a.safetensors")
    assert str(shadow) in str(refusal.value)


def test_a_folder_is_not_taken_for_its_longer_namesake(host: StubHost) -> None:
    with pytest.raises(NodeError, match="is in none of"):
        placement.listed_name(host, str(host.models / "unet2" / "a.safetensors"))
