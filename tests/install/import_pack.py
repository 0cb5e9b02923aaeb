"""Imports a pack as ComfyUI does, with stand-ins for ComfyUI's modules: import_pack.py FOLDER.

For any Python, with nothing installed. Prints as JSON what a browser would be told of its nodes.
"""

import importlib.util
import json
import logging
import sys
from unittest.mock import MagicMock

HOST = ["folder_paths", "comfy", "comfy.utils", "comfy.model_management", "comfy_execution", "nodes", "server"]


def main(folder):
    for name in HOST:
        sys.modules[name] = MagicMock()
    sys.modules["folder_paths"].get_filename_list.return_value = ["model.safetensors"]
    warnings = []
    handler = logging.Handler()
    handler.emit = lambda record: warnings.append(record.getMessage())
    logging.getLogger().addHandler(handler)
    # ComfyUI's name for it: the path, which is no package's name.
    spec = importlib.util.spec_from_file_location(folder, folder + "/__init__.py")
    pack = importlib.util.module_from_spec(spec)
    sys.modules[folder] = pack
    spec.loader.exec_module(pack)
    nodes = {}
    for name, node in pack.NODE_CLASS_MAPPINGS.items():
        nodes[name] = {
            "display_name": pack.NODE_DISPLAY_NAME_MAPPINGS[name],
            "description": node.DESCRIPTION,
            "inputs": sorted(node.INPUT_TYPES()["required"]),
        }
    print(json.dumps({"nodes": nodes, "warnings": warnings}))


main(sys.argv[1])
