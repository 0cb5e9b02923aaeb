"""The reader of Rust text, on which the other checks rest."""

import pytest

from .rust_code import code, crate_imports, shipped, strings


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a // unsafe\nb", "a \nb"),
        ("a /* unsafe\n */ b", "a  b"),
        ('f("// no comment");', 'f("");'),
        (r'f("a \" b", c)', 'f("", c)'),
        ('f(r#"a " b"#, c)', 'f("", c)'),
        ("f(b'{', '\\'', '\"')", "f(' ', ' ', ' ')"),
        ("fn f<'a>(x: &'a str) -> &'a str", "fn f<'a>(x: &'a str) -> &'a str"),
    ],
)
def test_comments_and_strings_are_taken_out(text: str, expected: str) -> None:
    assert code(text) == expected


def test_strings_are_found() -> None:
    assert strings(r'''f("a \" b", 'c', r#"d " e"#, b"f") // "g"''') == [r"a \" b", 'd " e', "f"]


def test_test_modules_are_cut_off() -> None:
    assert shipped("fn f() {}\n#[cfg(test)]\nmod tests {}\n") == "fn f() {}\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("use crate::bits;", {"bits"}),
        ("use crate::{a::{b, c}, d, e::f as g};", {"a", "d", "e"}),
        ("let x = crate::tail::walk(crate::bits::X);", {"tail", "bits"}),
        ("use super::crate_like; // crate::comment", set()),
    ],
)
def test_imports_are_found(text: str, expected: set[str]) -> None:
    assert crate_imports(text) == expected
