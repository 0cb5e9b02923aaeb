"""The node in real ComfyUI servers, over HTTP and the websocket. Needs the native wheel in their environments."""
