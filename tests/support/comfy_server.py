"""Starts and stops a real, headless ComfyUI server on CPU, from the environments of scripts/envs."""

import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from support.comfy_client import ComfyClient

ROOT = Path(__file__).parents[2]
VERSIONS = ("0.30.0", "0.16.3")
TEST_NODES = Path(__file__).parent / "test_nodes"
CUPY_STAND_IN = Path(__file__).parent / "cupy_cpu"
# Imports take 15 to 40 s of CPU time on a busy machine.
START_SECONDS = 300


class ComfyServer:
    """A running server of one ComfyUI version with its own base directory (models, custom_nodes, user, output)."""

    def __init__(
        self,
        version: str,
        base: Path,
        packs: Mapping[str, Path],
        environment: Path | None = None,
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Start a server. `packs`: folder name in custom_nodes -> the pack's folder, which is linked there.

        `environment` is another Python environment than the version's own, with that version in it; `variables` are
        set for the server.
        """
        environment = environment or ROOT / ".envs" / f"comfy-{version}"
        assert (environment / ".ready").exists(), f"no {environment}: run python3.11 scripts/envs/setup.py"
        self.base = base
        self.log = base / "server.log"
        self.address = f"127.0.0.1:{_free_port()}"
        for folder in ("custom_nodes", "user", "models/diffusion_models", "models/checkpoints"):
            (base / folder).mkdir(parents=True, exist_ok=True)
        for name, pack in packs.items():
            link = base / "custom_nodes" / name
            # A server that was killed has left it.
            link.unlink(missing_ok=True)
            link.symlink_to(pack, target_is_directory=True)
        tree = environment / "ComfyUI"
        port = self.address.split(":")[1]
        command = [environment / "bin" / "python", tree / "main.py", "--cpu", "--disable-auto-launch"]
        command += ["--listen", "127.0.0.1", "--port", port, "--base-directory", base, "--disable-api-nodes"]
        command += ["--database-url", f"sqlite:///{base / 'user' / 'comfyui.db'}"]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [str(part) for part in command],
                cwd=tree,
                env=os.environ | {"PYTHONPATH": str(CUPY_STAND_IN), "HF_HUB_OFFLINE": "1", **variables},
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
            )
        try:
            self._wait_until_up()
        except BaseException:
            self.stop()
            raise

    def _wait_until_up(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            assert self.process.poll() is None, f"the server ended:\n{self.log_tail()}"
            try:
                with urllib.request.urlopen(f"http://{self.address}/system_stats", timeout=10):
                    return
            except OSError:
                time.sleep(0.2)
        raise TimeoutError(f"no answer after {START_SECONDS} s:\n{self.log_tail()}")

    def log_tail(self, lines: int = 60) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def client(self) -> ComfyClient:
        """A new websocket session; close it, or use it as a context manager."""
        return ComfyClient(self.address)

    @property
    def diffusion_models(self) -> Path:
        return self.base / "models" / "diffusion_models"

    def kill(self) -> None:
        """End the server as a crash does."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """End the server and wait for it."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
