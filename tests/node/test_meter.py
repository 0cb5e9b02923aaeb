"""The arithmetic of the progress bar and its text."""

from __future__ import annotations

import pytest

from comfy_node.service.meter import Meter
from comfy_node.service.wording import duration, size

from .fake_native import Snapshot

GIGA = 10**9


def at(seconds: float, done: float, total: float = 10 * GIGA, phase: str = "compressing") -> Snapshot:
    return Snapshot(phase, int(done), int(total), int(done * 0.7), int(20 * done / max(total, 1)), 20, "u", seconds)


def test_text_has_percent_rate_time_left_unit_and_bytes_out() -> None:
    meter = Meter()
    for second in range(5):
        frame = meter.frame(at(second, second * GIGA), float(second))
    assert frame
    assert (frame.value, frame.total) == (4 * GIGA, 10 * GIGA)
    assert frame.text == "40 %, 1.00 GB/s, 6.0 s left, unit 8/20, 2.80 GB written"


def test_at_most_ten_frames_a_second() -> None:
    meter = Meter()
    times = [step / 1000 for step in range(10_000) if meter.frame(at(step / 1000, step), step / 1000)]
    assert len(times) > 70, "the bar must not stand still either"
    # The last frame of a job comes outside the meter and does not wait: it must fit in.
    assert all(sum(start <= t < start + 1 for t in times) <= 9 for start in times)


def test_the_bar_never_goes_back() -> None:
    meter = Meter()
    done = [0, 4 * GIGA, 3 * GIGA, 5 * GIGA, 11 * GIGA, 2 * GIGA]
    frames = [meter.frame(at(second, bytes_in), float(second)) for second, bytes_in in enumerate(done)]
    values = [frame.value for frame in frames if frame]
    assert values == [0, 4 * GIGA, 4 * GIGA, 5 * GIGA, 10 * GIGA, 10 * GIGA]


def test_an_unknown_total_is_no_progress() -> None:
    frame = Meter().frame(at(1.0, 0, total=0, phase="checking"), 0.0)
    assert frame and (frame.value, frame.text) == (0, "checking ...")


def test_the_rate_follows_a_change_without_jumping() -> None:
    meter = Meter()
    for second in range(10):
        meter.frame(at(second, second * GIGA / 10), float(second))
    frame = meter.frame(at(10.0, 1.9 * GIGA), 10.0)
    assert frame and "280.0 MB/s" not in frame.text
    # One second at 1 GB/s after nine at 0.1 GB/s weighs a fifth: 0.1 + (1.0 - 0.1) / 5.
    assert "280 MB/s" in frame.text


def test_checking_does_not_slow_the_rate_down() -> None:
    meter = Meter()
    meter.frame(at(8.0, 0, phase="checking"), 8.0)
    frame = meter.frame(at(9.0, GIGA), 9.0)
    assert frame and "1.00 GB/s" in frame.text


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "0 bytes"), (999, "999 bytes"), (1500, "2 kB"), (12_300_000, "12 MB"), (23_802_932_552, "23.80 GB")],
)
def test_sizes(count: int, words: str) -> None:
    assert size(count) == words


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.04, "0.0 s"), (9.94, "9.9 s"), (41.4, "0:41"), (3599.6, "1:00:00"), (3725, "1:02:05")]
)
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words
