"""ComfyUI loads the nodes of DFloat11 Compress from here. They register with or without their native part."""

import logging

from .comfy_node import native
from .comfy_node.nodes.compress import DFloat11Compress
from .comfy_node.service.naming import title

NODE_CLASS_MAPPINGS = {"DFloat11Compress": DFloat11Compress}
NODE_DISPLAY_NAME_MAPPINGS = {"DFloat11Compress": title("DFloat11 Compress")}
WEB_DIRECTORY = "./web"

_problem = native.problem()
if _problem:
    logging.warning("%s", _problem.sentence)

__all__ = ["NODE_CLASS_MAPPINGS", "NODE_DISPLAY_NAME_MAPPINGS", "WEB_DIRECTORY"]
