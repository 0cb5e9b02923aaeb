"""Small synthetic models as folders: config.json and safetensors shards, from the definitions in `architectures/`."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.architectures import Architecture
from support.synthetic import random_tensor, unit_modules
from support.tensors import Tensors, write_safetensors

# Keys that no rule asks for, to see that a result keeps them: with them the text is not what Python would write again.
FOREIGN: dict[str, Any] = {"rope_theta": 1e6, "eos_token_id": [1, 2], "title": "é"}


@dataclass(frozen=True)
class FolderModel:
    """A model: tensors in the order in which its module lists them, and what its config.json says."""

    architecture: Architecture
    tensors: Tensors
    config: dict[str, Any]

    def official(self) -> Tensors:
        """The tensors that an instantiated model has: those of tied names that a unit asks for stand in it twice."""
        units = {
            weight for module in unit_modules(self.architecture) for weight in self.architecture.unit_weights(module)
        }
        tied = {name: self.tensors[same] for name, same in self.architecture.tied if name in units}
        return self.tensors | tied

    def write(self, folder: Path, shards: int = 3) -> Path:
        """The folder, in the names of its library; one shard has no index."""
        return write_folder(folder, self.tensors, self.config, self.architecture.layout, shards)


def write_folder(folder: Path, tensors: Tensors, config: Mapping[str, Any], layout: str, shards: int) -> Path:
    """Writes config.json and the weights, in `shards` files of neighbouring tensors, with an index."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config, indent=4, ensure_ascii=False))
    stem = "model" if layout == "transformers" else "diffusion_pytorch_model"
    metadata = {"format": "pt"}
    if shards == 1:
        write_safetensors(folder / f"{stem}.safetensors", tensors, metadata)
        return folder
    names = list(tensors)
    share = -(-len(names) // shards)
    weight_map = {}
    for number in range(shards):
        file = f"{stem}-{number + 1:05}-of-{shards:05}.safetensors"
        part = names[number * share : (number + 1) * share]
        write_safetensors(folder / file, {name: tensors[name] for name in part}, metadata)
        weight_map |= dict.fromkeys(part, file)
    total = sum(tensor.array.nbytes for tensor in tensors.values())
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (folder / f"{stem}.safetensors.index.json").write_text(json.dumps(index, indent=2))
    return folder


def make_folder_model(architecture: Architecture, seed: int = 0) -> FolderModel:
    """A model with every unit pattern, the names that detection asks for, and tensors outside the units."""
    plan: dict[str, tuple[str, tuple[int, ...]]] = {}
    for name in architecture.required:
        flat = name.endswith((".bias", "norm.weight"))
        plan[name] = ("BF16", (24,) if flat else (24, 20))
    tied = {name for name, _ in architecture.tied}
    for number, module in enumerate(unit_modules(architecture)):
        for position, weight in enumerate(architecture.unit_weights(module)):
            if weight not in tied:
                plan[weight] = ("BF16", (6 + position % 9, 20 + 3 * (position % 9) + number % 7))
        # They travel in the unit's shard; a model in BF16 may hold some in F32.
        plan[f"{module}.zoo_norm.weight"] = ("F32" if number % 2 else "BF16", (24,))
    plan["extra.bias"] = ("F32", (33,))
    tensors = {name: random_tensor(name, *entry, seed) for name, entry in plan.items()}
    config: dict[str, Any] = {"model_type": "zoo"} | FOREIGN
    for key, value in architecture.config:
        config[key] = [value] if key == "architectures" else value
    return FolderModel(architecture, tensors, config)
