"""The decoder shares nothing with the encoder that could make a fault confirm itself."""

import pytest

from .rust_code import crate_imports, sources

# `bf16` holds both directions side by side; its own test goes through all words.
SHARED = {"bf16", "bits", "error", "limits"}
# Chooses among implementations of both, and compares them; knows both, and holds nothing of either.
CHOICE = {"kernel", "x86"}

CODEC = {name: text for name, text in sources("df11-codec").items() if name != "lib.rs"}
DECODER = {name for name in CODEC if name == "decode.rs" or name.startswith("decode/")}
# Everything else that is not shared.
ENCODER = {
    name for name in CODEC if name not in DECODER and name.split("/")[0].removesuffix(".rs") not in SHARED | CHOICE
}


def test_the_modules_are_there() -> None:
    assert len(DECODER) >= 4
    assert {"encode.rs", "codebook.rs", "luts.rs", "tail.rs", "unit_code.rs", "layout.rs"} <= ENCODER


@pytest.mark.parametrize("name", sorted(DECODER))
def test_the_decoder_knows_only_what_is_shared(name: str) -> None:
    assert crate_imports(CODEC[name]) <= SHARED | CHOICE


@pytest.mark.parametrize("name", sorted(ENCODER))
def test_the_encoder_does_not_know_the_decoder(name: str) -> None:
    assert "decode" not in crate_imports(CODEC[name])


@pytest.mark.parametrize("name", sorted(SHARED))
def test_what_is_shared_knows_neither(name: str) -> None:
    assert crate_imports(CODEC[f"{name}.rs"]) <= SHARED
