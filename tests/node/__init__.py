"""The node pack in a stub of ComfyUI, with a stand-in for its native part."""
