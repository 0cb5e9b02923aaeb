"""Memory is a promise: how much the program takes, whatever the model."""
