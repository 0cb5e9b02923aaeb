"""An architecture for made-up models."""


def toy_architecture(units: str) -> str:
    """The architecture file of models whose units are single tensors, `UNITS.0.weight` and so on."""
    return rf"""
schema = 1
id = "Toy"
name = "a toy"
source = "made up for tests"

[loader]
node = "ToyLoader"
pack = "toys"
url = "https://example.org"

[detect]
all = ["{units}.0.weight"]

[[units]]
pattern = '{units}\.\d+'
attributes = []
"""
