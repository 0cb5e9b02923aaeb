"""The official compressor and loader as nodes, on CPU."""

from pathlib import Path

import comfy.model_detection
import comfy.model_management
import comfy.model_patcher
import comfy.sd
import comfy.utils
import folder_paths
import torch

from support import official
from support.architectures import all_architectures, unit_weights

ARCHITECTURES = all_architectures()


class OfficialCompress:
    """What the official node does: ComfyUI loads the model in BF16, `compress_model` writes one file."""

    RETURN_TYPES = ()
    FUNCTION = "compress"
    CATEGORY = "DFloat11/test"
    OUTPUT_NODE = True

    @classmethod
    def INPUT_TYPES(cls):
        return {
            "required": {"source": ("STRING", {}), "target": ("STRING", {}), "architecture": (list(ARCHITECTURES),)}
        }

    def compress(self, source, target, architecture):
        """`source` and `target` are paths."""
        patcher = comfy.sd.load_diffusion_model(source, {"dtype": torch.bfloat16})
        official.compress_module(patcher.model.diffusion_model, ARCHITECTURES[architecture].units, Path(target))
        return {"ui": {"text": [type(patcher.model.model_config).__name__]}}


class OfficialLoader:
    """`DFloat11Model.from_single_file` on a model that ComfyUI instantiates, as the official loader node does it."""

    RETURN_TYPES = ("MODEL",)
    FUNCTION = "load"
    CATEGORY = "DFloat11/test"

    @classmethod
    def INPUT_TYPES(cls):
        models = folder_paths.get_filename_list("diffusion_models")
        return {"required": {"model_name": (models,), "architecture": (list(ARCHITECTURES),)}}

    def load(self, model_name, architecture):
        path = Path(folder_paths.get_full_path_or_raise("diffusion_models", model_name))
        model = load_model(path, ARCHITECTURES[architecture].units)
        device = comfy.model_management.get_torch_device()
        return (WholeModel(model, device, comfy.model_management.unet_offload_device()),)


class ModelLoader(OfficialLoader):
    """The official loader node, by its own name and widget, for tiny Flux models."""

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"dfloat11_model_name": (folder_paths.get_filename_list("diffusion_models"),)}}

    def load(self, dfloat11_model_name):
        return super().load(dfloat11_model_name, "Flux")


class OfficialCheck:
    """Loads as OfficialLoader does and compares every decoded weight, and every other parameter, with the source."""

    RETURN_TYPES = ()
    FUNCTION = "check"
    CATEGORY = "DFloat11/test"
    OUTPUT_NODE = True

    @classmethod
    def INPUT_TYPES(cls):
        return {
            "required": {"source": ("STRING", {}), "target": ("STRING", {}), "architecture": (list(ARCHITECTURES),)}
        }

    def check(self, source, target, architecture):
        """`source`: path of the BF16 checkpoint that `target`, a DF11 file, was made from."""
        model = load_model(Path(target), ARCHITECTURES[architecture].units).diffusion_model
        reference = comfy.sd.load_diffusion_model(source, {"dtype": torch.bfloat16}).model.diffusion_model
        wanted = reference.state_dict()
        weights = {}
        for name, module in model.named_modules():
            for hook in module._forward_pre_hooks.values():
                hook(module, None)
                # The next unit is decoded into the same buffer.
                for weight in unit_weights(ARCHITECTURES[architecture].units, name):
                    weights[weight] = model.get_submodule(weight.removesuffix(".weight")).weight.clone()
        found = dict(model.named_parameters()) | weights
        assert found.keys() == wanted.keys(), found.keys() ^ wanted.keys()
        different = [name for name, tensor in wanted.items() if not same_bits(found[name], tensor)]
        assert not different, different
        return {"ui": {"text": [f"{len(weights)} {len(found)}"]}}


class WholeModel(comfy.model_patcher.ModelPatcher):
    """Loads the model as it is: ComfyUI's patcher goes through the weights, which units have only while they run."""

    def load(self, device_to=None, lowvram_model_memory=0, force_patch_weights=False, full_load=False):
        self.model.to(device_to)
        self.model.device = device_to
        self.model.model_lowvram = False
        self.model.lowvram_patch_counter = 0
        self.model.model_loaded_weight_memory = self.model_size()
        self.model.current_weight_patches_uuid = self.patches_uuid


def load_model(path, units):
    """The ComfyUI model that a DF11 file is for, filled by the official loader; raises where it is not filled."""
    tensors = comfy.utils.load_torch_file(str(path))
    # Detection asks for the weights that compression has taken away, by name.
    for name in list(tensors):
        if name.endswith(".sign_mantissa"):
            for weight in unit_weights(units, name.removesuffix(".sign_mantissa")):
                tensors[weight] = torch.empty(0, device="meta")
    config = comfy.model_detection.model_config_from_unet(tensors, "")
    device = comfy.model_management.get_torch_device()
    cast = comfy.model_management.unet_manual_cast(torch.bfloat16, device, config.supported_inference_dtypes)
    config.set_inference_dtype(torch.bfloat16, cast)
    model = config.get_model(tensors, "")
    official.load_file_into(model.diffusion_model, path, units)
    return model


def same_bits(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(a.view(torch.uint8), b.view(torch.uint8))
