"""Adapters: the only modules that import ComfyUI's own."""
