"""Our bytes against the official encoder's, on CPU."""
