"""Every architecture is loaded in the newest ComfyUI by some test, or that ComfyUI has no class for it."""

import re
import tomllib

import pytest

from architectures import headers, name_sets
from loader.test_model_names import NEWEST, OTHERS, PUBLISHED
from support.architectures import FOLDER, all_architectures
from support.comfy_server import ROOT
from support.tiny_models import TINY_MODELS

WITH_WEIGHTS = set(TINY_MODELS)
BY_NAME = {headers.load(name).architecture for name in PUBLISHED} | {name_sets.relatives()[n][0] for n in OTHERS}
CLASSES = ROOT / ".envs" / f"comfy-{NEWEST}" / "ComfyUI" / "comfy" / "supported_models.py"
# A variant is another choice of units for the same class.
VARIANTS = {
    definition["id"]: definition["variant_of"]
    for definition in (tomllib.loads(path.read_text()) for path in FOLDER.glob("*.toml"))
    if "variant_of" in definition
}


@pytest.mark.parametrize("architecture", sorted(all_architectures()))
def test_architecture_is_reached(architecture: str) -> None:
    architecture = VARIANTS.get(architecture, architecture)
    if architecture in WITH_WEIGHTS | BY_NAME:
        return
    has_class = re.search(rf"^class {architecture}\(", CLASSES.read_text(), re.MULTILINE)
    assert not has_class, f"ComfyUI {NEWEST} can build {architecture}, and no test does"
    pytest.skip(f"ComfyUI {NEWEST} has no class {architecture}")
