"""The node classes: widgets and outputs, no logic."""
