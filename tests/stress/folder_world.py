"""The same for models that are folders: the source in three files with an index, the result in a file for each unit."""

from pathlib import Path

from support.folders import write_folder
from support.toy import toy_architecture

from .world import World, tensors

SOURCE = "model"
TARGET = "model-DF11"


class FolderWorld(World):
    """A folder with a model's folder."""

    def __init__(self, df11: Path, folder: Path, scale: float = 1) -> None:
        super().__init__(df11, folder, scale)
        self.target = folder / TARGET
        self.partial = folder / f"{TARGET}.partial"
        self.journal = self.partial / ".df11.journal"

    def make_source(self, scale: float) -> None:
        definition = toy_architecture("one").replace("schema = 1", 'schema = 1\nlayout = "transformers"')
        (self.folder / "toy.toml").write_text(definition)
        self.source = write_folder(self.folder / SOURCE, tensors(scale), {"model_type": "toy"}, "transformers", 3)
        (self.source / "tokenizer.json").write_text("{}")

    def may_be_left(self) -> set[str]:
        return {path.name for path in (self.source, self.target, self.partial)} | {"toy.toml"}
