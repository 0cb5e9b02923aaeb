"""Which crate may depend on which, and what each may do. docs/ARCHITECTURE.md gives the reasons."""

import json
import re
import subprocess
from functools import cache

import pytest

from .rust_code import ROOT, code, sources

# A new dependency is a decision: it is made here too.
ALLOWED = {
    "df11-codec": {"thiserror"},
    # The NVIDIA driver is loaded at run time, so nothing links to it.
    "df11-cuda": {"libloading", "thiserror"},
    "df11-file": {
        "df11-codec",
        "df11-cuda",
        "base64",
        "crossbeam-channel",
        "flate2",
        "fs4",
        "memmap2",
        "regex",
        "safetensors",
        "same-file",
        "serde",
        "serde_json",
        "sysinfo",
        "thiserror",
        "thread-priority",
        "toml",
        "twox-hash",
    },
    # signal-hook for the one signal that ctrlc does not know, SIGXFSZ.
    "df11-cli": {"df11-file", "clap", "clap_complete", "ctrlc", "indicatif", "serde", "serde_json", "signal-hook"},
    "df11-py": {"df11-cli", "df11-file", "pyo3", "pythonize", "serde"},
    # A stand-in for the driver: only tests depend on it, so it is in nothing that is shipped.
    "fake-cuda": {"libloading"},
}

# Where `unsafe` may stand: in the kernels that use instructions of one processor family, in the calls of the NVIDIA
# driver, where the decode kernel is launched (on some systems a GPU can write to any memory of the program, and
# only there it is known what the kernel gets), and where requests for memory are handed to the system's allocator.
UNSAFE_ALLOWED = {
    "df11-codec": {
        "decode/avx2.rs",
        "encode/avx2.rs",
        "encode/avx2/join.rs",
        "encode/avx2/tables.rs",
        "encode/avx2/vectors.rs",
        "encode/avx512.rs",
        "encode/avx512/octets.rs",
        "encode/avx512/put.rs",
        "encode/avx512/tables.rs",
        "encode/neon.rs",
        "encode/neon/vectors.rs",
        "histogram/avx2.rs",
        "histogram/avx512.rs",
        "histogram/neon.rs",
    },
    "df11-cuda": {"driver.rs", "memory.rs", "module.rs", "system.rs"},
    "df11-file": {"check/gpu/unit.rs", "system/reserve.rs"},
    "fake-cuda": {"control.rs", "driver.rs"},
}

OUTPUT = re.compile(r"\be?print(ln)?!|\bdbg!|\bstd(out|err)\(")
ENVIRONMENT = re.compile(r"\benv\b(?!!)")
PLATFORM = re.compile(r"\bcfg!?\([^\]]*\b(unix|windows|target_os|target_family)\b|\bstd::os\b")


@cache
def packages() -> dict[str, dict]:
    command = ["cargo", "metadata", "--format-version", "1", "--no-deps", "--offline"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return {package["name"]: package for package in json.loads(done.stdout)["packages"]}


def test_every_crate_is_known() -> None:
    assert set(packages()) == set(ALLOWED)


@pytest.mark.parametrize("crate", ALLOWED)
def test_dependencies(crate: str) -> None:
    dependencies = packages()[crate]["dependencies"]
    assert {entry["name"] for entry in dependencies if entry["kind"] is None} == ALLOWED[crate]
    assert not [entry["name"] for entry in dependencies if entry["kind"] == "build"]


def test_the_codec_does_no_io() -> None:
    for name, text in sources("df11-codec").items():
        # The outcome of the kernels' self-test is kept.
        text = code(text).replace("use std::sync::OnceLock;", "") if name == "kernel/roster.rs" else code(text)
        assert not re.search(r"\bstd::(fs|io|net|env|process|thread|path|sync)\b", text), name
        assert not re.search(r"use std::\{[^}]*\b(fs|io|net|env|process|thread|path|sync)\b", text), name


@pytest.mark.parametrize("crate", ["df11-codec", "df11-cuda", "df11-file"])
def test_the_libraries_are_silent_and_ask_no_environment(crate: str) -> None:
    for name, text in sources(crate).items():
        for pattern in (OUTPUT, ENVIRONMENT, re.compile(r"\bpyo3\b")):
            assert not pattern.search(code(text)), (name, pattern.pattern)


def test_platform_code_is_in_one_module() -> None:
    for crate in ALLOWED:
        users = {name for name, text in sources(crate).items() if PLATFORM.search(code(text))}
        assert {name.removesuffix(".rs").partition("/")[0] for name in users} <= {"system"}, crate


@pytest.mark.parametrize("crate", ALLOWED)
def test_unsafe_is_only_where_it_is_allowed(crate: str) -> None:
    lints = (ROOT / "rust" / crate / "Cargo.toml").read_text()
    assert re.search(r"^\[lints\]\nworkspace = true$", lints, re.MULTILINE)
    users = {name for name, text in sources(crate).items() if re.search(r"\bunsafe(_code)?\b", code(text))}
    assert users == UNSAFE_ALLOWED.get(crate, set())


def test_nothing_shipped_depends_on_the_stand_in_for_the_driver() -> None:
    users = {crate for crate in ALLOWED for entry in packages()[crate]["dependencies"] if entry["name"] == "fake-cuda"}
    assert users == {"df11-cli", "df11-cuda", "df11-file"}
    kinds = {
        entry["kind"] for crate in users for entry in packages()[crate]["dependencies"] if entry["name"] == "fake-cuda"
    }
    assert kinds == {"dev"}


def test_unsafe_is_denied_by_default() -> None:
    assert re.search(r'^unsafe_code = "deny"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)


def test_the_program_is_a_library_and_three_lines() -> None:
    lines = [line for line in code(sources("df11-cli")["main.rs"]).splitlines() if line.strip()]
    assert len(lines) == 3
    assert "df11_cli::run(" in lines[1]


def test_the_python_module_uses_one_function_of_the_program() -> None:
    used = {use for text in sources("df11-py").values() for use in re.findall(r"\bdf11_cli(?:::\w+)*", code(text))}
    assert used == {"df11_cli::run"}


@pytest.mark.parametrize(
    ("pattern", "bad", "good"),
    [
        (OUTPUT, 'println!("x")', 'format!("x")'),
        (OUTPUT, 'eprint!("x")', "fingerprint(x)"),
        (OUTPUT, "std::io::stderr().write_all(x)", "stderr.len()"),
        (ENVIRONMENT, 'std::env::var("HOME")', 'env!("CARGO_PKG_VERSION")'),
        (ENVIRONMENT, "use std::{env, fs};", "environment"),
        (PLATFORM, "#[cfg(all(test, unix))]", "#[cfg(test)] fn f(windows: u8) {}"),
        (PLATFORM, "if cfg!(windows) {", "windows"),
        (PLATFORM, "use std::os::unix::fs::FileExt;", "std::osiris"),
    ],
)
def test_the_patterns_find_what_they_are_for(pattern: re.Pattern[str], bad: str, good: str) -> None:
    assert pattern.search(code(bad))
    assert not pattern.search(code(good))
