"""The README's recipe for many models, as it stands there: each is compressed once, however often it is run."""

import json
import os
import re
import subprocess
from pathlib import Path

from support.architectures import folder_architectures
from support.folders import make_folder_model

README = Path(__file__).parents[2] / "README.md"
FLUX = folder_architectures()["flux-diffusers"]
MODELS = ("one", "two", "three")


def recipe(models: Path, results: Path) -> str:
    """The commands, in folders of their own."""
    section = README.read_text().partition("#### Many models")[2]
    found = re.search(r"(?:^    .*\n)+", section, re.MULTILINE)
    assert found
    text = found[0].replace("/models", "\0").replace("/df11/", f"{results}/").replace("\0", str(models))
    assert text.count(str(models)) == 1 and text.count(str(results)) == 2
    return text


def test_the_recipe_for_many_models(df11: Path, scratch: Path) -> None:
    models, results = scratch / "models", scratch / "results"
    results.mkdir()
    for seed, name in enumerate(MODELS):
        (models / name).mkdir(parents=True)
        make_folder_model(FLUX, seed).write(models / name / "transformer")
    (models / "three" / "transformer" / "config.json").write_text('{"_class_name": "Other"}')
    environment = os.environ | {"PATH": f"{df11.parent}:{os.environ['PATH']}"}
    for status in ("done", "already-done"):
        done = subprocess.run(["sh", "-c", recipe(models, results)], env=environment, check=False)
        # One was refused, which xargs tells.
        assert done.returncode == 123
        for name in MODELS[:2]:
            report = json.loads((results / f"{name}.report.json").read_text())
            assert (report["schema"], report["status"]) == ("df11.report/1", status)
            assert {"config.json", "diffusion_pytorch_model.safetensors"} < set(os.listdir(results / name))
        refused = json.loads((results / "three.report.json").read_text())
        assert (refused["schema"], refused["error"]["code"][:2]) == ("df11.error/1", "E_")
        assert not (results / "three").exists()
