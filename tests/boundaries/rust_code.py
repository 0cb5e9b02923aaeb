"""Rust source text taken apart far enough to ask what it mentions."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]

TOKEN = re.compile(
    r"""
      (?P<comment> //[^\n]* | /\*.*?\*/ )
    | (?P<string> b?r(?P<hashes>\#*)"(?P<raw>.*?)"(?P=hashes) | b?"(?P<plain>(?:\\.|[^"\\])*)" )
    | (?P<char> b?'(?:\\.[^']*|[^'\\])' )
    """,
    re.VERBOSE | re.DOTALL,
)


def code(text: str) -> str:
    """The text without comments, and with empty strings and characters."""
    kept = {"comment": "", "string": '""', "char": "' '"}
    return TOKEN.sub(lambda match: next(new for kind, new in kept.items() if match[kind] is not None), text)


def strings(text: str) -> list[str]:
    """The string literals, escapes not resolved."""
    found = (match for match in TOKEN.finditer(text) if match["string"] is not None)
    return [match["plain"] if match["raw"] is None else match["raw"] for match in found]


def shipped(text: str) -> str:
    """The text before its test module."""
    return re.split(r"^#\[cfg\(test\)\]\s+mod ", text, maxsplit=1, flags=re.MULTILINE)[0]


def sources(crate: str) -> dict[str, str]:
    """Shipped text of a crate's files by their path below src."""
    folder = ROOT / "rust" / crate / "src"
    files = {path.relative_to(folder).as_posix(): shipped(path.read_text()) for path in sorted(folder.rglob("*.rs"))}
    assert files, crate
    return files


def crate_imports(text: str) -> set[str]:
    """The modules of its own crate that a text names: `crate::a::B` and `crate::{a, b::C}` give a and b."""
    text = code(text)
    names = set(re.findall(r"\bcrate\s*::\s*(\w+)", text))
    for match in re.finditer(r"\bcrate\s*::\s*\{", text):
        depth, start = 1, match.end()
        for index in range(start, len(text)):
            depth += {"{": 1, "}": -1}.get(text[index], 0)
            if depth == 0 or (depth == 1 and text[index] == ","):
                names.update(re.findall(r"^\s*(\w+)", text[start:index]))
                start = index + 1
            if depth == 0:
                break
    return names
