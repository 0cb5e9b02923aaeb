"""Writes the wheel for platforms that have no native one: fallback_wheel.py FOLDER.

It imports everywhere and says what it lacks. Installers prefer a native wheel of the same version. Where none fits,
this one keeps `pip install -r requirements.txt` from failing, which would keep the whole node pack away. maturin
cannot make it; the metadata comes from the same pyproject.toml. Same input, same bytes.
"""

import base64
import hashlib
import sys
import zipfile
from pathlib import Path

from project import PURE_TAG, ROOT, pyproject, version, wheel_name

MODULE = Path(__file__).parent / "fallback_module.py"


def metadata(root: Path) -> str:
    """The package's description, as maturin writes it."""
    project = pyproject(root)["project"]
    lines = [("Metadata-Version", "2.4"), ("Name", project["name"]), ("Version", project["version"])]
    lines += [("Classifier", classifier) for classifier in project["classifiers"]]
    lines += [("License-File", project["license"]["file"]), ("Summary", project["description"])]
    lines += [("Requires-Python", project["requires-python"])]
    lines += [("Description-Content-Type", "text/markdown; charset=UTF-8; variant=GFM")]
    lines += [("Project-URL", f"{label}, {url}") for label, url in project["urls"].items()]
    lines += [("Requires-Dist", requirement) for requirement in project["dependencies"]]
    head = "".join(f"{key}: {value}\n" for key, value in lines)
    return f"{head}\n{(root / project['readme']).read_text()}"


def module(root: Path) -> str:
    project = pyproject(root)["project"]
    text = MODULE.read_text()
    return text.replace("@VERSION@", project["version"]).replace("@REPOSITORY@", project["urls"]["Repository"])


def write(folder: Path, root: Path = ROOT) -> Path:
    project = pyproject(root)["project"]
    info = f"{wheel_name(PURE_TAG, root).split('-')[0]}-{version(root)}.dist-info"
    scripts = "".join(f"{name}={target}\n" for name, target in project["scripts"].items())
    tags = f"Wheel-Version: 1.0\nGenerator: fallback_wheel\nRoot-Is-Purelib: true\nTag: {PURE_TAG}\n"
    files = {
        "df11_native/__init__.py": module(root),
        f"{info}/METADATA": metadata(root),
        f"{info}/WHEEL": tags,
        f"{info}/entry_points.txt": f"[console_scripts]\n{scripts}",
        f"{info}/licenses/{project['license']['file']}": (root / project["license"]["file"]).read_text(),
    }
    record = "".join(f"{name},{digest(text)},{len(text.encode())}\n" for name, text in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n"
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / wheel_name(PURE_TAG, root)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, text in files.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = 0o644 << 16
            wheel.writestr(entry, text, zipfile.ZIP_DEFLATED)
    return target


def digest(text: str) -> str:
    hashed = hashlib.sha256(text.encode()).digest()
    return f"sha256={base64.urlsafe_b64encode(hashed).rstrip(b'=').decode()}"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(write(Path(sys.argv[1])))
