"""A client of a ComfyUI server: HTTP with the standard library, the websocket in a thread of its own."""

import json
import struct
import threading
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import websocket

# A binary message that carries text for one node (protocol.BinaryEventTypes.TEXT).
TEXT_MESSAGE = 3

Prompt = dict[str, dict[str, Any]]


class PromptRejected(Exception):
    """The server answered a prompt with HTTP 400. `details` is its JSON: error and node_errors."""

    def __init__(self, details: dict[str, Any]) -> None:
        super().__init__(json.dumps(details))
        self.details = details


@dataclass(frozen=True)
class Event:
    """A websocket message: seconds of `time.monotonic()`, its type and data.

    Text under a node has the type "progress_text" and the data {"node": id, "text": text}.
    """

    time: float
    type: str
    data: dict[str, Any]


@dataclass(frozen=True)
class Result:
    """A finished prompt: its events, and its entry in the server's history."""

    events: list[Event]
    history: dict[str, Any]

    @property
    def status(self) -> str:
        """'success' or 'error'; an interrupted prompt is an error too."""
        return self.history["status"]["status_str"]

    @property
    def outputs(self) -> dict[str, Any]:
        """What output nodes showed, by node id."""
        return self.history["outputs"]

    def require_success(self) -> "Result":
        """Itself; raises AssertionError with the node's exception if the prompt failed."""
        errors = [event.data for event in self.of_type("execution_error")]
        texts = [f"{e['node_type']}: {e['exception_message']}\n{''.join(e['traceback'])}" for e in errors]
        assert self.status == "success", "\n".join(texts)
        return self

    def of_type(self, kind: str) -> list[Event]:
        return [event for event in self.events if event.type == kind]


class ComfyClient:
    """One websocket session. Use as a context manager."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.client_id = uuid.uuid4().hex
        self._events: list[Event] = []
        self._changed = threading.Condition()
        self._closed = False
        self._socket = websocket.create_connection(f"ws://{address}/ws?clientId={self.client_id}", timeout=30)
        self._socket.settimeout(None)
        self._thread = threading.Thread(target=self._receive, daemon=True)
        self._thread.start()

    def __enter__(self) -> "ComfyClient":
        return self

    def __exit__(self, *_: object) -> None:
        self._closed = True
        self._socket.close()
        self._thread.join(10)

    def _receive(self) -> None:
        while True:
            try:
                opcode, data = self._socket.recv_data()
            except (websocket.WebSocketException, OSError):
                break
            if opcode == websocket.ABNF.OPCODE_CLOSE:
                break
            event = _decode(opcode, data)
            if event:
                with self._changed:
                    self._events.append(event)
                    self._changed.notify_all()
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def request(self, path: str, body: object = None) -> Any:
        """GET, or POST of a JSON body; returns the JSON answer or None for an empty one."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://{self.address}{path}", data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def object_info(self, node: str | None = None) -> dict[str, Any]:
        """The node definitions that the frontend sees; of one node, its own definition."""
        answer = self.request("/object_info" + (f"/{node}" if node else ""))
        return answer[node] if node else answer

    def submit(self, prompt: Prompt) -> str:
        """Queue a prompt and return its id; raises PromptRejected when validation fails."""
        try:
            return self.request("/prompt", {"prompt": prompt, "client_id": self.client_id})["prompt_id"]
        except urllib.error.HTTPError as error:
            with error:
                raise PromptRejected(json.loads(error.read())) from None

    def interrupt(self) -> None:
        """What the Stop button does."""
        self.request("/interrupt", {})

    def events(self) -> list[Event]:
        """All events so far."""
        with self._changed:
            return list(self._events)

    def wait_for(self, condition: Callable[[Event], bool], timeout: float = 60) -> Event:
        """The first event, past ones included, that meets the condition."""
        deadline = time.monotonic() + timeout
        seen = 0
        with self._changed:
            while True:
                for event in self._events[seen:]:
                    if condition(event):
                        return event
                seen = len(self._events)
                assert not self._closed, "the server closed the websocket"
                if not self._changed.wait(deadline - time.monotonic()) and len(self._events) == seen:
                    kinds = [event.type for event in self._events]
                    raise TimeoutError(f"no such event in {timeout} s; seen: {kinds[-20:]}")

    def finish(self, prompt_id: str, timeout: float = 60) -> Result:
        """Wait until a prompt is over; its history is there only after `executing` with no node."""

        def is_end(event: Event) -> bool:
            data = event.data
            return event.type == "executing" and data.get("node") is None and data.get("prompt_id") == prompt_id

        self.wait_for(is_end, timeout)
        history = self.request(f"/history/{prompt_id}")[prompt_id]
        mine = [event for event in self.events() if event.data.get("prompt_id", prompt_id) == prompt_id]
        return Result(mine, history)

    def run(self, prompt: Prompt, timeout: float = 60) -> Result:
        """Queue a prompt and wait for its end."""
        return self.finish(self.submit(prompt), timeout)


def _decode(opcode: int, data: bytes) -> Event | None:
    """An event from a websocket frame; None for previews."""
    now = time.monotonic()
    if opcode == websocket.ABNF.OPCODE_TEXT:
        message = json.loads(data)
        return Event(now, message["type"], message["data"])
    kind, length = struct.unpack_from(">II", data)
    if kind != TEXT_MESSAGE:
        return None
    node, text = data[8 : 8 + length], data[8 + length :]
    return Event(now, "progress_text", {"node": node.decode(), "text": text.decode()})
