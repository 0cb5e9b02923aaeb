"""Real ComfyUI and the official loader: what they make of our files, and what the official node writes."""
