"""ComfyUI loads the nodes of DFloat11 Compress from here. They register with or without their native part."""

import logging

from .comfy_node import native
from .comfy_node.nodes.compress import DFloat11Compress
from .comfy_node.nodes.compress_folder import DFloat11CompressFolder
from .comfy_node.nodes.inspect import DFloat11Inspect
from .comfy_node.nodes.restore import DFloat11Restore
from .comfy_node.nodes.verify import DFloat11Verify
from .comfy_node.service.naming import title

NODE_CLASS_MAPPINGS = {
    "DFloat11Compress": DFloat11Compress,
    "DFloat11CompressFolder": DFloat11CompressFolder,
    "DFloat11Inspect": DFloat11Inspect,
    "DFloat11Verify": DFloat11Verify,
    "DFloat11Restore": DFloat11Restore,
}
NODE_DISPLAY_NAME_MAPPINGS = {
    "DFloat11Compress": title("DFloat11 Compress"),
    "DFloat11CompressFolder": title("DFloat11 Compress Folder"),
    "DFloat11Inspect": title("DFloat11 Inspect"),
    "DFloat11Verify": title("DFloat11 Verify"),
    "DFloat11Restore": title("DFloat11 Restore"),
}
WEB_DIRECTORY = "./web"

_problem = native.problem()
if _problem:
    logging.warning("%s", _problem.sentence)

__all__ = ["NODE_CLASS_MAPPINGS", "NODE_DISPLAY_NAME_MAPPINGS", "WEB_DIRECTORY"]
