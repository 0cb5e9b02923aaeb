"""The list of models, and what a choice may lead to."""

from __future__ import annotations

import os
from types import ModuleType

import pytest

from comfy_node.errors import NodeError
from comfy_node.service import sources

from .stub_host import StubHost


def test_lists_both_kinds_and_only_safetensors(host: StubHost) -> None:
    for name in ("b.safetensors", "sub/a.SFT", "c.ckpt", "d.safetensors.partial"):
        host.add("diffusion_models", name)
    for name in ("b.safetensors", "sd.pt"):
        host.add("checkpoints", name)
    assert sources.choices(host) == ["b.safetensors", "sub/a.SFT", "checkpoints/b.safetensors"]


def test_finds_the_file_behind_a_choice(host: StubHost) -> None:
    model = host.add("diffusion_models", "sub/a.safetensors")
    checkpoint = host.add("checkpoints", "a.safetensors")
    found = sources.find(host, "sub/a.safetensors")
    assert (found.kind, found.name, found.path) == ("diffusion_models", "sub/a.safetensors", str(model))
    assert sources.find(host, "checkpoints/a.safetensors").path == str(checkpoint)


def test_a_workflow_from_windows_fits(host: StubHost) -> None:
    model = host.add("diffusion_models", "sub/a.safetensors")
    assert sources.find(host, "sub\\a.safetensors").path == str(model)
    assert sources.find(host, "checkpoints\\b.safetensors" if host.add("checkpoints", "b.safetensors") else "").name


def test_a_list_from_windows_fits(host: StubHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "names", lambda kind: ["sub\\a.safetensors"] if kind == "diffusion_models" else [])
    monkeypatch.setattr(host, "path", lambda kind, name: "C:\\models\\" + name)
    assert sources.find(host, "sub/a.safetensors").path == "C:\\models\\sub\\a.safetensors"


def test_a_diffusion_model_goes_before_a_checkpoint_of_the_same_label(host: StubHost) -> None:
    model = host.add("diffusion_models", "checkpoints/a.safetensors")
    host.add("checkpoints", "a.safetensors")
    assert sources.choices(host) == ["checkpoints/a.safetensors"]
    assert sources.find(host, "checkpoints/a.safetensors").path == str(model)


@pytest.mark.parametrize(
    "choice",
    [
        "gone.safetensors", "", "../secret.safetensors", "sub/../a.safetensors", "/etc/passwd",
        "..\\secret.safetensors", "checkpoints/../../secret.safetensors", "a.safetensors\0", 5,
    ],
)  # fmt: skip
def test_refuses_what_is_not_in_the_list(host: StubHost, choice: str) -> None:
    host.add("diffusion_models", "a.safetensors")
    (host.models / "secret.safetensors").write_bytes(b"")
    with pytest.raises(NodeError, match="is not in the list"):
        sources.find(host, choice)


def test_says_that_the_lists_are_empty(host: StubHost) -> None:
    with pytest.raises(NodeError, match=r"no \.safetensors file in ComfyUI's diffusion_models and checkpoints"):
        sources.find(host, "a.safetensors")


def test_says_that_a_file_has_gone(host: StubHost) -> None:
    path = host.add("diffusion_models", "a.safetensors")
    os.remove(path)
    path.symlink_to("nowhere")
    with pytest.raises(NodeError, match="has gone"):
        sources.find(host, "a.safetensors")


def test_the_server_is_told_one_sentence(host: StubHost, pack: ModuleType) -> None:
    validate = pack.NODE_CLASS_MAPPINGS["DFloat11Compress"].VALIDATE_INPUTS
    assert "no .safetensors file" in validate(model="a.safetensors", output_name="")
    host.add("diffusion_models", "a.safetensors")
    assert validate(model="a.safetensors", output_name="") is True
    assert "'../x' has a character" in validate(model="a.safetensors", output_name="../x")
    assert "No model is picked yet" in validate(model="(pick a model)", output_name="")
    assert "'' is not in the list" in validate(model="", output_name="")
    assert "'../a.safetensors' is not in the list" in validate(model="../a.safetensors", output_name="")
    # Values that come from links are not known yet.
    assert validate(model=None, output_name=None) is True
    told = len(host.events)
    refusal = validate(model=None, output_name="con")
    assert "is reserved" in refusal
    # Pages hear of refusals only.
    assert told == 5 and host.events[told:] == [("df11.refused", {"sentence": refusal})]
