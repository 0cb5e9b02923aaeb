"""Helpers that tests share: tensors and safetensors files, the official encoder and loader, a real ComfyUI server."""
