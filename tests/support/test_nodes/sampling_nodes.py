"""What sampling a tiny model needs: conditioning of any width, and a digest of the result."""

import hashlib

import torch


class TinyConditioning:
    """Random conditioning of any width, so that a tiny model can be sampled without a text encoder."""

    RETURN_TYPES = ("CONDITIONING",)
    FUNCTION = "make"
    CATEGORY = "DFloat11/test"

    @classmethod
    def INPUT_TYPES(cls):
        number = ("INT", {"default": 0, "max": 1 << 20})
        return {"required": {"tokens": number, "width": number, "pooled": number, "seed": number}}

    def make(self, tokens, width, pooled, seed):
        generator = torch.Generator().manual_seed(seed)
        extra = {"pooled_output": torch.randn(1, pooled, generator=generator)}
        return ([[torch.randn(1, tokens, width, generator=generator), extra]],)


class LatentDigest:
    """Shows shape and SHA-256 of a latent: equal digests mean equal bits."""

    RETURN_TYPES = ()
    FUNCTION = "show"
    CATEGORY = "DFloat11/test"
    OUTPUT_NODE = True

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"samples": ("LATENT",)}}

    def show(self, samples):
        values = samples["samples"].float().contiguous()
        assert values.isfinite().all(), "the latent holds NaN or infinity"
        assert values.std() > 0, "the latent is constant"
        return {"ui": {"text": [f"{tuple(values.shape)} {hashlib.sha256(values.numpy().tobytes()).hexdigest()}"]}}
