"""The picture of a result: drawn where Pillow is, as in each ComfyUI's environment; absent elsewhere."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from support.comfy_server import VERSIONS

from .fake_native import Script
from .node_values import values
from .stub_host import PACK, StubHost

# Runs in ComfyUI's Python: draws, looks at what was drawn, and prints what it saw.
DRAW = """
import io, json, sys
from PIL import Image
from comfy_node.service import picture

def unit(name, bits):
    return {"name": name, "weights": 1000, "bf16_bytes": 2000, "df11_bytes": int(bits * 125), "bits_per_weight": bits}

case = json.loads(sys.argv[1])
if "files" in case:
    png = picture.of_files([tuple(entry) for entry in case["files"]])
else:
    outcome = {"architecture_name": case["name"], "source_bytes": case["before"], "target_bytes": case["after"]}
    png = picture.of_units(outcome, [unit(*entry) for entry in case["units"]])
image = Image.open(io.BytesIO(png))
image.load()
colours = image.convert("RGB").getcolors(1 << 20)
rows = [y for y in range(image.height) if len(set(image.crop((0, y, image.width, y + 1)).getdata())) > 1]
bar = [image.getpixel((x, 165)) for x in range(image.width)]
saved = len([p for p in bar if p == (0x5B, 0x65, 0x78)])
kept = len([p for p in bar if p == (0x45, 0xC4, 0xB0)])
print(json.dumps({"format": image.format, "size": image.size, "mode": image.mode, "colours": len(colours),
                  "last": rows[-1], "share": kept / max(saved + kept, 1)}))
"""
BLOCKS = [[f"double_blocks.{index}", 10.9 + index % 3 / 10] for index in range(19)]
CASES = {
    "flux": {"name": "FLUX.1 dev", "before": 100, "after": 68, "units": BLOCKS},
    "one unit": {"name": "One", "before": 100, "after": 70, "units": [["u", 11.0]]},
    "many": {"name": "Many", "before": 100, "after": 70, "units": [[f"layers.{i}.mlp", 11.0] for i in range(2000)]},
    "grown": {"name": "Grown", "before": 100, "after": 110, "units": [["u.0", 17.0], ["u.1", 16.5]]},
    "any name": {"name": "\u6a21\u578b \U0001f600", "before": 100, "after": 70, "units": [["\u6a21.0", 11.0]]},
    "files": {"files": [["a" * 300, 100, 70], ["\u6a21\u578b.safetensors", 50, 34], ["c", 1, 1]]},
    "many files": {"files": [[f"model {index}", 100, 70] for index in range(100)]},
}


def drawn(version: str, case: dict[str, Any]) -> dict[str, Any]:
    python = PACK / ".envs" / f"comfy-{version}" / "bin" / "python"
    command = [python, "-c", DRAW, json.dumps(case)]
    done = subprocess.run(command, cwd=PACK, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", CASES)
def test_is_a_card_of_its_own(version: str, case: str) -> None:
    found = drawn(version, CASES[case])
    width, height = found["size"]
    assert (found["format"], found["mode"], width) == ("PNG", "RGB", 800), "opaque, so that no theme shines through"
    assert 250 < height < 1500 and found["colours"] > 20
    assert height - 60 < found["last"] < height - 10, "nothing is cut off at the end, and no empty end is left"
    before, after = CASES[case].get("before"), CASES[case].get("after")
    if before and after < before:
        assert found["share"] == pytest.approx(after / before, abs=0.01)


def test_without_pillow_there_is_no_picture(pack: ModuleType, host: StubHost) -> None:
    if importlib.util.find_spec("PIL"):
        pytest.skip("this Python has Pillow")
    host.add("diffusion_models", "a.safetensors")
    for name in ("DFloat11Compress", "DFloat11CompressFolder"):
        node = pack.NODE_CLASS_MAPPINGS[name]()
        assert set(node.run(**values(node))["ui"]) == {"text"}


def test_is_shown_as_a_preview(
    pack: ModuleType, host: StubHost, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []

    def of_units(outcome: dict[str, Any], units: list[dict[str, Any]]) -> bytes:
        seen.append([unit["name"] for unit in units])
        return b"png"

    monkeypatch.setattr(pack.comfy_node.service.picture, "of_units", of_units)
    host.add("diffusion_models", "a.safetensors")
    node = pack.NODE_CLASS_MAPPINGS["DFloat11Compress"]()
    (image,) = node.run(**values(node))["ui"]["images"]
    assert (image["type"], image["subfolder"]) == ("temp", "")
    assert Path(host.temp, image["filename"]).read_bytes() == b"png"
    # Of a file that was there already the units come from its header.
    script.report = {"status": "already-done", "units": []}
    script.df11 = {"units": [{"name": "from the header"}]}
    (second,) = node.run(**values(node))["ui"]["images"]
    assert seen == [["some.unit"], ["from the header"]]
    assert second["filename"] != image["filename"]


def test_a_temp_folder_that_cannot_be_written_costs_the_picture_alone(
    pack: ModuleType, host: StubHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pack.comfy_node.service.picture, "of_units", lambda outcome, units: b"png")
    host.temp.write_bytes(b"no folder")
    host.add("diffusion_models", "a.safetensors")
    assert set(
        pack.NODE_CLASS_MAPPINGS["DFloat11Compress"]().run(**values(pack.NODE_CLASS_MAPPINGS["DFloat11Compress"]))["ui"]
    ) == {"text"}


def test_the_module_imports_with_a_broken_pillow(monkeypatch: pytest.MonkeyPatch) -> None:
    import comfy_node.service.picture as picture

    monkeypatch.setitem(sys.modules, "PIL", None)
    importlib.reload(picture)
    assert picture.Image is None
    assert picture.of_files([("a", 2, 1)]) is None and picture.of_units({}, [{}]) is None
    monkeypatch.undo()
    importlib.reload(picture)
