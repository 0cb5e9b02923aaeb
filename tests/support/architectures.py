"""The project's architecture definitions, read for tests with the standard library only."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "architectures"
COMFYUI = "comfyui"
_SIZES = re.compile(r"^shape = \[(.*\]\n|\n(    .*\n)*\]\n)", re.MULTILINE)


@dataclass(frozen=True)
class Architecture:
    """What tests need of one `architectures/*.toml`. Names in `detect` are the source's, without its prefix."""

    id: str
    # Pattern -> attributes, in the file's order. No attribute: the module itself.
    units: dict[str, list[str]]
    required: list[str]
    # Of each group at least one name must be there.
    alternatives: list[list[str]]
    # Name, axis, size.
    sizes: list[tuple[str, int, int]]
    rename: list[tuple[str, str]] = field(default_factory=list)
    drop: list[str] = field(default_factory=list)
    keep_f32: list[str] = field(default_factory=list)
    layout: str = COMFYUI
    # What config.json must say: key, value.
    config: list[tuple[str, object]] = field(default_factory=list)
    # A tensor and the one that it equals.
    tied: list[tuple[str, str]] = field(default_factory=list)

    def loaded_name(self, name: str) -> str:
        """The name that ComfyUI's module has for a source name without its prefix."""
        for pattern, replacement in self.rename:
            name = re.sub(pattern, replacement, name)
        return name

    def is_dropped(self, name: str) -> bool:
        return any(re.search(pattern, name) for pattern in self.drop)

    def unit_weights(self, module: str) -> list[str]:
        return unit_weights(self.units, module)


def unit_weights(units: Mapping[str, Sequence[str]], module: str) -> list[str]:
    """The weights of the unit at `module` in encoding order; empty if no pattern matches it."""
    for pattern, attributes in units.items():
        if re.fullmatch(pattern, module):
            return [f"{module}.{a}.weight" for a in attributes] or [f"{module}.weight"]
    return []


def load(path: Path) -> Architecture | None:
    """Read a definition; None for one that only says why a model is refused."""
    data = tomllib.loads(path.read_text())
    if "refused" in data:
        return None
    # A variant is a choice of other units: it is recognised as its base.
    detect = _detection(path.parent, data)
    keys = data.get("keys", {})
    return Architecture(
        id=data["id"],
        units={unit["pattern"]: unit["attributes"] for unit in data["units"]},
        required=detect["all"],
        alternatives=detect.get("any", []),
        sizes=[tuple(entry) for entry in detect.get("shape", [])],
        rename=[tuple(entry) for entry in keys.get("rename", [])],
        drop=keys.get("drop", []),
        keep_f32=keys.get("keep_f32", []),
        layout=data.get("layout", COMFYUI),
        config=[tuple(entry) for entry in detect.get("config", [])],
        tied=[tuple(entry) for entry in data.get("tied", [])],
    )


def _detection(folder: Path, data: dict) -> dict:
    if "variant_of" not in data:
        return data["detect"]
    others = (tomllib.loads(path.read_text()) for path in folder.glob("*.toml"))
    return next(other["detect"] for other in others if other["id"] == data["variant_of"])


def without_sizes(name: str, folder: Path) -> Architecture:
    """A definition without its demands on sizes, also written to `folder`, for `df11`."""
    path = next(path for path in FOLDER.glob("*.toml") if f'id = "{name}"\n' in path.read_text())
    copy = folder / path.name
    copy.write_text(_SIZES.sub("", path.read_text()))
    architecture = load(copy)
    assert architecture is not None
    assert not architecture.sizes
    return architecture


def all_architectures() -> dict[str, Architecture]:
    """Every definition in ComfyUI's layout that has units, by id."""
    return {id_: known for id_, known in _loaded().items() if known.layout == COMFYUI}


def folder_architectures() -> dict[str, Architecture]:
    """Every definition of models that are folders with a config.json, by id."""
    return {id_: known for id_, known in _loaded().items() if known.layout != COMFYUI}


def _loaded() -> dict[str, Architecture]:
    loaded = (load(path) for path in sorted(FOLDER.glob("*.toml")))
    return {architecture.id: architecture for architecture in loaded if architecture}
