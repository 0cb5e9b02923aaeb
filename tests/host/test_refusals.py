"""Bad names never reach the disk; other refusals are one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.comfy_client import ComfyClient, PromptRejected
from support.comfy_server import ComfyServer

from .conftest import MakeModel
from .prompts import compress, sentences

OUTPUT_NAMES = [
    "../escape", "sub/name", "sub\\name", "/tmp/escape", "C:\\escape", "C:escape", "NUL", "con.safetensors",
    "nul\0byte", "dot.", "space ", ".hidden", "x" * 300,
]  # fmt: skip
MODELS = ["../model.safetensors", "/etc/passwd", "checkpoints/../../x.safetensors", "gone.safetensors", ""]


def everything(comfy: ComfyServer) -> set[Path]:
    return {path for path in comfy.base.rglob("*") if "user" not in path.parts and "custom_nodes" not in path.parts}


@pytest.mark.parametrize("name", OUTPUT_NAMES)
def test_output_names(comfy: ComfyServer, client: ComfyClient, model: MakeModel, name: str) -> None:
    model()
    before = everything(comfy)
    with pytest.raises(PromptRejected) as rejected:
        client.submit(compress("model.safetensors", output_name=name))
    (sentence,) = sentences(rejected.value)
    assert sentence.startswith(f"The output name {name!r} ")
    assert everything(comfy) == before


@pytest.mark.parametrize("name", MODELS)
def test_models(client: ComfyClient, model: MakeModel, name: str) -> None:
    model()
    with pytest.raises(PromptRejected) as rejected:
        client.submit(compress(name))
    assert f"The model {name!r} is not in the list." in sentences(rejected.value).pop()


def test_values_that_are_not_in_a_list(client: ComfyClient, model: MakeModel) -> None:
    model()
    for widgets in ({"architecture": "Nonsense"}, {"header": "x"}, {"verify": "x"}, {"if_exists": "x"}, {"cast": "x"}):
        with pytest.raises(PromptRejected, match="value_not_in_list"):
            client.submit(compress("model.safetensors", **widgets))


def test_a_bad_name_from_a_link(comfy: ComfyServer, client: ComfyClient, model: MakeModel) -> None:
    model()
    before = everything(comfy)
    prompt = compress("model.safetensors", output_name=["2", 0])
    prompt["2"] = {"class_type": "PrimitiveString", "inputs": {"value": "../escape"}}
    result = client.run(prompt)
    (error,) = result.of_type("execution_error")
    assert error.data["exception_message"].startswith("The output name '../escape' has a character")
    assert everything(comfy) == before


def test_a_file_that_is_no_model(comfy: ComfyServer, client: ComfyClient, model: MakeModel) -> None:
    source = model()
    source.write_bytes(b"<!doctype html><html>not found</html>")
    logged = len(comfy.log.read_text())
    result = client.run(compress("model.safetensors"))
    (error,) = result.of_type("execution_error")
    sentence = error.data["exception_message"].strip()
    assert sentence.startswith("model.safetensors: ") and sentence.endswith("[E_NOT_SAFETENSORS]")
    assert result.of_type("progress_text")[-1].data["text"] == sentence
    # What the browser shows as details is as short as it can be, and the console has the sentence alone.
    assert sum("comfy_node" in frame for frame in error.data["traceback"]) == 1
    log = comfy.log.read_text()[logged:]
    assert sentence in log and "Traceback" not in log and "comfy_node" not in log
    assert sorted(path.name for path in source.parent.glob("model*")) == ["model.safetensors"]


def test_the_source_is_never_replaced(client: ComfyClient, model: MakeModel) -> None:
    source = model()
    before = source.read_bytes()
    result = client.run(compress("model.safetensors", output_name="model.safetensors", if_exists="replace"))
    (error,) = result.of_type("execution_error")
    assert "[E_TARGET_IS_SOURCE]" in error.data["exception_message"]
    assert source.read_bytes() == before


def test_another_file_is_replaced_only_when_asked(client: ComfyClient, model: MakeModel) -> None:
    other = model().with_name("mine.safetensors")
    other.write_bytes(b"something dear")
    (error,) = client.run(compress("model.safetensors", output_name="mine")).of_type("execution_error")
    assert "[E_TARGET_EXISTS]" in error.data["exception_message"]
    numbered = client.run(compress("model.safetensors", output_name="mine", if_exists="number"))
    assert "Name in the loader's list: mine-2.safetensors" in numbered.outputs["1"]["text"][0]
    assert other.read_bytes() == b"something dear"
    assert client.run(compress("model.safetensors", output_name="mine", if_exists="replace")).status == "success"
    assert other.read_bytes() != b"something dear"
