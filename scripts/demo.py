"""The main job, as a user does it: a real ComfyUI, a Flux-shaped checkpoint, one node, one DFloat11 file.

Usage: make demo. Needs what `make envs wheel` makes; everything it writes lies in demo/.
"""

import shutil
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from support.comfy_client import ComfyClient  # noqa: E402
from support.comfy_server import ComfyServer  # noqa: E402
from support.tensors import Tensors, bf16, write_safetensors  # noqa: E402

DEMO = ROOT / "demo"
WIDTH = 1536
NAME = "flux-shaped.safetensors"


def flux_shaped(width: int) -> Tensors:
    """Two double and two single units with FLUX.1's names and proportions at a smaller width, about 480 MB.

    Every row has its own spread, as in trained weights.
    """
    shapes = {"img_in": (width, 64), "txt_in": (width, 4096), "final_layer.linear": (64, width)}
    for part, inputs in (("time_in", 256), ("guidance_in", 256), ("vector_in", 768)):
        shapes |= {f"{part}.in_layer": (width, inputs), f"{part}.out_layer": (width, width)}
    shapes["final_layer.adaLN_modulation.1"] = (2 * width, width)
    norms = []
    for index in range(2):
        for stream in ("img", "txt"):
            name = f"double_blocks.{index}.{stream}"
            shapes |= {f"{name}_mod.lin": (6 * width, width), f"{name}_attn.qkv": (3 * width, width)}
            shapes |= {f"{name}_attn.proj": (width, width), f"{name}_mlp.0": (4 * width, width)}
            shapes[f"{name}_mlp.2"] = (width, 4 * width)
            norms.append(f"{name}_attn.norm")
        name = f"single_blocks.{index}"
        shapes |= {f"{name}.linear1": (7 * width, width), f"{name}.linear2": (width, 5 * width)}
        shapes[f"{name}.modulation.lin"] = (3 * width, width)
        norms.append(f"{name}.norm")
    rng = np.random.default_rng(0)
    tensors: Tensors = {}
    for name, (rows, columns) in shapes.items():
        spread = rng.uniform(0.01, 0.04, (rows, 1)).astype(np.float32)
        tensors[f"{name}.weight"] = bf16(rng.standard_normal((rows, columns), np.float32) * spread)
        tensors[f"{name}.bias"] = bf16(rng.standard_normal(rows, np.float32) * 0.02)
    for name in norms:
        tensors |= {f"{name}.{part}_norm.scale": bf16(np.ones(128, np.float32)) for part in ("query", "key")}
    return tensors


def run_node(client: ComfyClient) -> str:
    """Press Run, show the node's live text, return its report."""
    definition = client.object_info("DFloat11Compress")
    required = definition["input"]["required"]
    # The first choice or the default of every widget: what a user has who changes nothing.
    inputs = {
        name: entry[0][0] if isinstance(entry[0], list) else entry[1]["default"] for name, entry in required.items()
    }
    prompt = {
        "1": {"class_type": "DFloat11Compress", "inputs": inputs | {"model": NAME}},
        "2": {"class_type": "PreviewAny", "inputs": {"source": ["1", 1]}},
    }
    prompt_id = client.submit(prompt)
    shown = ""
    while not any(e.type == "executing" and e.data.get("node") is None for e in client.events()):
        texts = [event.data["text"] for event in client.events() if event.type == "progress_text"]
        if texts and texts[-1] != shown:
            shown = texts[-1]
            print(f"    {shown}")
        time.sleep(0.5)
    result = client.finish(prompt_id)
    if result.status != "success":
        sys.exit(f"the node failed: {result.history['status']}")
    return result.outputs["2"]["text"][0]


def main() -> None:
    shutil.rmtree(DEMO, ignore_errors=True)
    models = DEMO / "models" / "diffusion_models"
    models.mkdir(parents=True)
    print(f"Making a Flux-shaped BF16 checkpoint: {models / NAME}")
    write_safetensors(models / NAME, flux_shaped(WIDTH))
    print("Starting a real ComfyUI 0.30.0, headless and without a GPU ...")
    server = ComfyServer("0.30.0", DEMO, {"dfloat11-compress": ROOT})
    try:
        with server.client() as client:
            print("Running the node DFloat11 Compress:")
            report = run_node(client)
            listed = client.object_info("UNETLoader")["input"]["required"]["unet_name"][0]
    finally:
        server.stop()
    result = NAME.replace(".safetensors", "-DF11.safetensors")
    if result not in listed:
        sys.exit(f"{result} is not in ComfyUI's list of models")
    print("\nThe node's report:\n")
    print("\n".join(f"    {line}" for line in report.splitlines()))
    print(f"""
ComfyUI lists the new file as {result}.

In your own ComfyUI:
  1. put this folder into custom_nodes and run `python install.py` in it with ComfyUI's Python, then restart ComfyUI;
  2. open Templates > dfloat11-compress > Compress a model, pick a model, press Run;
  3. load the result with the loader that the report names.""")


if __name__ == "__main__":
    main()
