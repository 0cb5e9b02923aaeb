"""What the nodes do, in plain values: no ComfyUI module is imported here, so that all of it runs in a unit test."""
