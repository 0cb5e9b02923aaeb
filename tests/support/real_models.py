"""Small models of real classes, randomly initialised: saved, compressed by the official tool, loaded and run on CPU.

Needs transformers (and diffusers for `Flux`) beside `dfloat11`. Run as a program it is a worker, which reads one call a
line, `[function, arguments]` as JSON, and answers each with a line: so the imports, which take seconds, are made once.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import torch  # noqa: E402

from support.official import complaints_in, dfloat11, quiet  # noqa: E402

SEED = 7
# Shards of a few tensors each.
SHARD_SIZE = "600KB"
TOKENS = [[1, 5, 77, 1023, 300, 2, 8]]

Patterns = Mapping[str, Sequence[str]]


def _save(model: Any, folder: str) -> None:
    model.save_pretrained(folder, max_shard_size=SHARD_SIZE)


def make_language_model(folder: str, family: str, tied: bool) -> int:
    """Saves a model of `family`, such as Qwen3, in BF16 and in shards. Returns its weights."""
    import transformers

    torch.manual_seed(SEED)
    sizes = {"hidden_size": 128, "intermediate_size": 256, "num_attention_heads": 4, "num_key_value_heads": 2}
    config = getattr(transformers, f"{family}Config")(
        num_hidden_layers=3, vocab_size=4096, head_dim=32, tie_word_embeddings=tied, **sizes
    )
    model = getattr(transformers, f"{family}ForCausalLM")(config).to(torch.bfloat16)
    _save(model, folder)
    return model.num_parameters()


def make_flux(folder: str) -> int:
    """Saves a diffusers Flux transformer likewise."""
    from diffusers.models import FluxTransformer2DModel

    torch.manual_seed(SEED)
    model = FluxTransformer2DModel(
        in_channels=16,
        num_layers=2,
        num_single_layers=2,
        attention_head_dim=16,
        num_attention_heads=4,
        joint_attention_dim=48,
        pooled_projection_dim=24,
        guidance_embeds=True,
        axes_dims_rope=(4, 6, 6),
    ).to(torch.bfloat16)
    _save(model, folder)
    return model.num_parameters()


def compress(kind: str, source: str, patterns: Patterns, target: str, single: bool) -> None:
    """The official tool's result of a saved model."""
    units = {pattern: list(attributes) for pattern, attributes in patterns.items()}
    with quiet():
        dfloat11.compress_model(_plain(kind, source), units, target, save_single_file=single, check_correctness=False)


def _plain(kind: str, source: str) -> Any:
    """The model as its own library loads it."""
    if kind == "flux":
        from diffusers.models import FluxTransformer2DModel

        return FluxTransformer2DModel.from_pretrained(source, torch_dtype=torch.bfloat16)
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(source, dtype=torch.bfloat16)


def _other_weights(kind: str, source: str) -> Any:
    """A model of the same class in BF16 whose weights are others."""
    model = _plain(kind, source)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(1.0)
    return model


def run_plain(kind: str, source: str, output: str) -> None:
    """Writes what the uncompressed model gives for a fixed input: raw bytes of a BF16 tensor."""
    _run(kind, _plain(kind, source), output)


def run_directory(kind: str, folder: str, source: str | None, output: str) -> list[str]:
    """The same through `from_pretrained`, which makes the model or fills one like `source`. Returns complaints."""
    model = None if source is None else _other_weights(kind, source)
    with quiet() as said:
        loaded = dfloat11.DFloat11Model.from_pretrained(folder, device="cpu", bfloat16_model=model)
        _run(kind, loaded, output)
    return complaints_in(said.getvalue())


def run_file(kind: str, file: str, patterns: Patterns, source: str, output: str) -> list[str]:
    """The same through `from_single_file`."""
    units = {pattern: list(attributes) for pattern, attributes in patterns.items()}
    with quiet() as said:
        model = dfloat11.DFloat11Model.from_single_file(file, units, _other_weights(kind, source), device="cpu")
        _run(kind, model, output)
    return complaints_in(said.getvalue())


@torch.no_grad()
def _run(kind: str, model: Any, output: str) -> None:
    model.eval()
    result = _flux_sample(model) if kind == "flux" else model(input_ids=torch.tensor(TOKENS)).logits
    assert result.dtype == torch.bfloat16 and result.isfinite().all() and result.std() > 0
    Path(output).write_bytes(result.contiguous().view(torch.int16).numpy().tobytes())


def _flux_sample(model: Any) -> torch.Tensor:
    """One step on 4 x 4 latent positions with 5 text tokens."""
    random = torch.Generator().manual_seed(SEED)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=random).to(torch.bfloat16)

    return model(
        hidden_states=draw(1, 16, 16),
        encoder_hidden_states=draw(1, 5, 48),
        pooled_projections=draw(1, 24),
        timestep=torch.tensor([0.5], dtype=torch.bfloat16),
        guidance=torch.tensor([3.5], dtype=torch.bfloat16),
        img_ids=torch.tensor([[0.0, row, column] for row in range(4) for column in range(4)]),
        txt_ids=torch.zeros(5, 3),
        return_dict=False,
    )[0]


FUNCTIONS = [make_language_model, make_flux, compress, run_plain, run_directory, run_file]


def main() -> None:
    torch.set_num_threads(2)
    functions = {function.__name__: function for function in FUNCTIONS}
    for line in sys.stdin:
        name, arguments = json.loads(line)
        # Only an answer may stand on standard output.
        with quiet():
            result = functions[name](**arguments)
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
