"""Just enough of ComfyUI for the pack: real folders on disk, and a record of what a browser would be shown."""

from __future__ import annotations

import importlib.util
import itertools
import os
import sys
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

PACK = Path(__file__).parents[2]
_numbers = itertools.count()


class StubHost:
    """Folders, Stop button, bar and text of one ComfyUI. `stop_type` differs between its versions."""

    def __init__(self, base: Path, stop_type: type[BaseException] = BaseException) -> None:
        self.models = base / "models"
        self.out = base / "output"
        self.user_folder = base / "user"
        self.temp = base / "temp"
        self.kinds = {
            "diffusion_models": [self.models / "unet", self.models / "diffusion_models", self.out / "diffusion_models"],
            "checkpoints": [self.models / "checkpoints"],
        }
        for folder in [*self.kinds["diffusion_models"][:2], *self.kinds["checkpoints"], self.out, self.user_folder]:
            folder.mkdir(parents=True)
        self.stopped = False
        self.Stop = type("InterruptProcessingException", (stop_type,), {})
        self.bar: list[tuple[float, int, int]] = []
        self.texts: list[tuple[float, str, str, str]] = []
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.node_classes: dict[str, type] = {}

    # What comfy_node.host.folders gives, for tests of the service alone.
    def names(self, kind: str) -> list[str]:
        found = set()
        for root in self.kinds[kind]:
            for folder, _, files in os.walk(root, followlinks=True):
                found.update(os.path.relpath(os.path.join(folder, name), root) for name in files)
        return sorted(found)

    def path(self, kind: str, name: str) -> str | None:
        return next((str(root / name) for root in self.kinds[kind] if (root / name).is_file()), None)

    def roots(self, kind: str) -> list[str]:
        return [str(root) for root in self.kinds[kind]]

    def output(self) -> str:
        return str(self.out)

    def user(self) -> str:
        return str(self.user_folder)

    # What comfy_node.host.monitor gives.
    def raise_if_interrupted(self) -> None:
        if self.stopped:
            self.stopped = False
            raise self.Stop()

    def show(self, value: int, total: int) -> None:
        self.raise_if_interrupted()
        self.bar.append((time.monotonic(), value, total))

    def say(self, text: str) -> None:
        self.texts.append((time.monotonic(), text, "", ""))

    def add(self, kind: str, name: str, root: int = -1) -> Path:
        """Puts a file into a root of a kind; by default the last one that is not the output folder."""
        roots = [folder for folder in self.kinds[kind] if self.out not in folder.parents]
        path = roots[root] / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"model")
        return path

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Makes the modules that the pack's adapters import."""
        host = self

        class ProgressBar:
            def __init__(self, total: int) -> None:
                pass

            def update_absolute(self, value: int, total: int) -> None:
                host.show(value, total)

        def send_progress_text(text: str, node_id: str, sid: str) -> None:
            host.texts.append((time.monotonic(), text, node_id, sid))

        def send_sync(event: str, data: dict[str, Any]) -> None:
            host.events.append((event, data))

        instance = SimpleNamespace(client_id="browser", send_progress_text=send_progress_text, send_sync=send_sync)
        modules: dict[str, dict[str, Any]] = {
            "folder_paths": {
                "get_filename_list": self.names,
                "get_full_path": self.path,
                "get_folder_paths": self.roots,
                "get_output_directory": self.output,
                "get_user_directory": self.user,
                "get_temp_directory": lambda: str(self.temp),
            },
            "comfy": {},
            "comfy.utils": {"ProgressBar": ProgressBar},
            "comfy.model_management": {"throw_exception_if_processing_interrupted": self.raise_if_interrupted},
            "nodes": {"NODE_CLASS_MAPPINGS": self.node_classes},
            "server": {"PromptServer": SimpleNamespace(instance=instance)},
        }
        for name, content in modules.items():
            module = ModuleType(name)
            module.__dict__.update(content)
            monkeypatch.setitem(sys.modules, name, module)
            parent, _, child = name.rpartition(".")
            if parent:
                setattr(sys.modules[parent], child, module)


def load_pack(folder: Path = PACK) -> ModuleType:
    """Imports the pack as ComfyUI does: by path, under a name that is no package name."""
    name = f"/custom_nodes/pack-{next(_numbers)}"
    spec = importlib.util.spec_from_file_location(name, folder / "__init__.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
