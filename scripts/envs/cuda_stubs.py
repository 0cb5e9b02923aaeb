"""Stub libraries that make torch's CUDA build importable without its 4 GB of CUDA libraries.

torch's Linux wheels link against cuBLAS, cuDNN and others. Python binds all symbols at import, so each missing
library gets a stub with the right soname that defines every symbol torch asks of it, with the symbol version
that torch expects (unversioned definitions trip an assertion in ld.so). Every stub function returns 1; none is
called while `torch.cuda.is_available()` is False. Never use such an environment on a machine with a GPU.

Usage: cuda_stubs.py SITE_PACKAGES (needs gcc and binutils).
"""

import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

# Library name -> the symbols that belong to it. The driver's own libcuda is loaded lazily and needs none.
SYMBOL_PATTERNS = {
    "libcublas": r"cublas(?!Lt)",
    "libcublasLt": r"cublasLt",
    "libcudnn": r"cudnn",
    "libcufft": r"cufft",
    "libcufile": r"cuFile",
    "libcupti": r"cupti",
    "libcurand": r"curand",
    "libcusolver": r"cusolver",
    "libcusparse": r"cusparse(?!Lt)",
    "libcusparseLt": r"cusparseLt",
    "libnccl": r"p?nccl",
    "libnvJitLink": r"nvJitLink",
    "libnvrtc": r"nvrtc",
    "libnvshmem_host": r"nvshmem|NVSHMEM",
    "libnvToolsExt": r"nvtx",
}


def needed_libraries(library: Path) -> set[str]:
    """The sonames in the NEEDED entries of an ELF file."""
    text = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"NEEDED.*\[(.+?)\]", text))


def undefined_symbols(library: Path) -> dict[str, str]:
    """Undefined dynamic symbols of an ELF file: name -> version ('' if it has none)."""
    command = ["nm", "-D", "--undefined-only", "--with-symbol-versions", library]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    symbols = {}
    for line in text.splitlines():
        name, _, version = line.split()[-1].partition("@")
        symbols[name] = version.strip("@")
    return symbols


def compile_stub(soname: str, symbols: dict[str, str], directory: Path) -> None:
    """Compile one shared library that defines `symbols` into `directory`."""
    by_version = defaultdict(list)
    for name, version in sorted(symbols.items()):
        by_version[version].append(name)
    script = "".join(f"{v} {{ global: {'; '.join(n)}; }};\n" for v, n in by_version.items() if v)
    with tempfile.TemporaryDirectory() as temp:
        source = Path(temp, "stub.c")
        body = "".join(f"int {name}(void) {{ return 1; }}\n" for name in sorted(symbols))
        source.write_text(body or "int unused;\n")
        options = []
        if script:
            versions = Path(temp, "stub.map")
            versions.write_text(script)
            options = [f"-Wl,--version-script={versions}"]
        output = directory / soname
        command = ["cc", "-w", "-shared", "-fPIC", *options, f"-Wl,-soname,{soname}", "-o", output, source]
        subprocess.run(command, check=True)


def make_stubs(site_packages: Path) -> list[str]:
    """Write the stubs that the torch below `site_packages` needs; returns their sonames."""
    torch_lib = site_packages / "torch" / "lib"
    # torch's RUNPATH looks here; the CUDA runtime wheel has made the folder.
    directory = next((site_packages / "nvidia").glob("cu*/lib"))
    present = {p.name for p in torch_lib.iterdir()} | {p.name for p in site_packages.glob("nvidia/**/*.so*")}
    needed: set[str] = set()
    symbols: dict[str, str] = {}
    for library in torch_lib.glob("*.so*"):
        needed |= needed_libraries(library)
        symbols |= undefined_symbols(library)
    made = []
    for soname in sorted(needed - present):
        pattern = SYMBOL_PATTERNS.get(soname.split(".so")[0])
        if pattern:
            compile_stub(soname, {n: v for n, v in symbols.items() if re.match(pattern, n)}, directory)
            made.append(soname)
    return made


if __name__ == "__main__":
    print(*make_stubs(Path(sys.argv[1])))
