"""One run of one node as people see it: the bar, the line under the node, a few lines in the server's console."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING, Any

from .. import native
from .meter import Meter, Part
from .ports import Monitor

if TYPE_CHECKING:
    from typing import ParamSpec, TypeVar

    from ..native import Job

    Answer = TypeVar("Answer")
    Given = ParamSpec("Given")

_POLL_SECONDS = 0.1
# A cancelled job ends within a second. A hung network drive must not block the queue for longer than this.
_CANCEL_SECONDS = 5.0
# Between lines in the console, which others read too.
_LINE_SECONDS = 10.0


class Watch:
    """Belongs to one run. Raises what the monitor raises when the user stops it."""

    def __init__(self, title: str, monitor: Monitor, clock: Callable[[], float] = time.monotonic) -> None:
        self._title = title
        self._monitor = monitor
        self._clock = clock
        self._meter = Meter()
        self._next_line = 0.0

    def begin(self, text: str) -> None:
        """Says in the console what starts."""
        self._line(text)

    def ask(self, call: Callable[Given, Answer], *args: Given.args, **options: Given.kwargs) -> Answer:
        """What a call without a job gives, or raises. Its disk may not answer: Stop ends the wait, not the call."""
        answer: Future[Answer] = Future()

        def work() -> None:
            try:
                answer.set_result(call(*args, **options))
            except BaseException as error:
                answer.set_exception(error)

        threading.Thread(target=work, daemon=True).start()
        try:
            while not wait([answer], _POLL_SECONDS).done:
                self._monitor.raise_if_interrupted()
        except BaseException:
            answer.add_done_callback(_drop)
            self._stopped()
            raise
        return answer.result()

    def result(self, job: Job, part: Part | None = None) -> dict[str, Any]:
        """Shows the job until it ends, and gives its report. Whatever is raised, Stop above all, cancels it first."""
        try:
            while not job.join(_POLL_SECONDS):
                self._monitor.raise_if_interrupted()
                now = self._clock()
                frame = self._meter.frame(job.snapshot(), now, part)
                if frame:
                    self._monitor.show(frame.value, frame.total)
                    self._monitor.say(frame.text)
                    if now >= self._next_line:
                        self._line(frame.text)
        except BaseException:
            job.cancel()
            job.join(_CANCEL_SECONDS)
            self._stopped()
            raise
        outcome = native.result(job)
        if not part:
            total = max(job.snapshot().bytes_total, 1)
            self._monitor.show(total, total)
        return outcome

    def raise_if_stopped(self) -> None:
        """For work without a job."""
        self._monitor.raise_if_interrupted()

    def advance(self, done: int, total: int) -> None:
        """Moves the bar between jobs."""
        self._monitor.show(done, max(total, 1))

    def end(self, text: str) -> None:
        """Says how the run ended."""
        self._monitor.say(text)
        self._line(text)

    def fail(self, sentence: str) -> None:
        """Says under the node why the run failed; the console hears it from ComfyUI."""
        self._monitor.say(sentence)

    def _stopped(self) -> None:
        self._monitor.say("Stopped.")
        self._line("Stopped.")

    def _line(self, text: str) -> None:
        self._next_line = self._clock() + _LINE_SECONDS
        logging.info("%s: %s", self._title, text)


def _drop(late: Future[Any]) -> None:
    """A job that came too late for anyone must not go on."""
    cancel = None if late.exception() else getattr(late.result(), "cancel", None)
    if cancel:
        cancel()
