"""Which level of `df11 verify` sees which damage, and that nothing is seen where there is none."""

import json
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from oracle import generators, mutations
from oracle.mutations import Change, Subject, flip, flip_high, less, more, swap
from oracle.packing import ATTRIBUTES, DEFINITION, Weights
from oracle.test_borders import CHUNK_BITS, draw
from support.cli import compress
from support.official import compress_file, encode_unit
from support.tensors import Tensor, Tensors, write_safetensors

MARKER = Tensor("BF16", np.arange(0x3F80, 0x3F80 + 9, dtype="<u2"))
PATTERNS = {r"single\.\d+": [], r"pair\.\d+": ["z", "a"], r"triple\.\d+": ["m", "a.0", "k"]}


def source_of(units: dict[str, Weights]) -> Tensors:
    tensors: Tensors = {"oracle.marker": MARKER}
    for name, weights in units.items():
        for attribute, values in zip(ATTRIBUTES[name.split(".")[0]], weights, strict=True):
            tensors[f"{name}{attribute}.weight"] = Tensor("BF16", values.reshape(1, -1))
    return tensors


def make(df11: Path, folder: Path, name: str, unit: str, weights: Weights, header: str) -> Subject:
    """A file of one unit and a tensor that is not compressed. `header` is `tool` for the official tool's own."""
    definitions = folder / "definitions"
    definitions.mkdir(exist_ok=True)
    (definitions / "oracle-units.toml").write_text(DEFINITION)
    source, file = folder / f"{name}.safetensors", folder / f"{name}-DF11.safetensors"
    tensors = source_of({unit: weights})
    write_safetensors(source, tensors)
    if header == "tool":
        compress_file(tensors, PATTERNS, file)
    else:
        compress(df11, source, file, "--architectures", definitions, "--header", header)
    return Subject(name, file, source, definitions, unit, weights, header == "self-describing")


def subjects(df11: Path, folder: Path) -> Iterator[Subject]:
    rng = np.random.default_rng(40)

    def gaussian(*sizes: int) -> Weights:
        return [generators.gaussian(size, 1) for size in sizes]

    yield make(df11, folder, "ours", "triple.0", gaussian(20_000, 500, 30_000), "self-describing")
    yield make(df11, folder, "tool", "pair.0", gaussian(30_000, 20_001), "tool")
    even = generators.from_counts({118: 20_000, 119: 20_000, 120: 10_000, 121: 5_003}, rng)
    yield make(df11, folder, "one-table", "pair.0", [even[:40_000], even[40_000:]], "official")
    uneven = np.tile(generators.many_tables(17, rng), 30)
    yield make(df11, folder, "seventeen-tables", "pair.0", [uneven[:11], uneven[11:]], "official")
    yield make(df11, folder, "single", "single.0", gaussian(60_001), "official")
    while True:
        stream = draw(2 * CHUNK_BITS + 8, rng, True)
        if stream.positions == stream.chunks:
            break
    border = [stream.weights[:100], stream.weights[100:]]
    yield make(df11, folder, "border", "pair.0", border, "official")


@pytest.fixture(
    scope="module", params=range(6), ids=["ours", "tool", "one-table", "seventeen-tables", "single", "border"]
)
def subject(request: pytest.FixtureRequest, made: list[Subject]) -> Subject:
    return made[request.param]


@pytest.fixture(scope="module")
def made(df11: Path, folder: Path) -> list[Subject]:
    return list(subjects(df11, folder))


@dataclass(frozen=True)
class Seen:
    """The lowest level that has to see a damage: in a file that describes itself, in another, in that with its source.

    None: it cannot be told, since the file is as good as another one. Where the weights stay the same, the source
    tells no more.
    """

    described: str | None
    plain: str | None
    source: str | None


AT_ONCE = Seen("structure", "structure", "structure")
DECODED = Seen("hash", "full", "full")
OTHER_WEIGHTS = Seen("hash", None, "full")
OTHER_TENSOR = Seen("hash", None, "structure")
OTHER_NAME = Seen("structure", None, "structure")

ANY = (flip, flip_high, more, less, swap)
NUMBER = (flip, flip_high, more, less)
# Field, changes, places, who has to see it.
TABLE: list[tuple[str, Sequence[Change], Sequence[mutations.Place], Seen]] = [
    ("luts", ANY, (0.0, mutations.table_used), OTHER_WEIGHTS),
    ("luts", (flip, swap), (0.3,), OTHER_WEIGHTS),
    ("luts", (flip_high, more), (mutations.length_used, mutations.length_longest), DECODED),
    # A short code more than there is room for, or one of 255 bits.
    ("luts", (flip, more, less), (mutations.length_unused,), AT_ONCE),
    ("luts", NUMBER, (1.0,), AT_ONCE),
    ("encoded_exponent", ANY, (0.0, 0.7), OTHER_WEIGHTS),
    ("encoded_exponent", (flip, less), (1.0,), OTHER_WEIGHTS),
    ("sign_mantissa", (flip, more, swap), (0.0, 0.3, 1.0), OTHER_WEIGHTS),
    ("output_positions", (flip, more), (0.0, 1.0), AT_ONCE),
    ("output_positions", (flip_high, more, less), (0.5,), DECODED),
    ("output_positions", (swap,), (0.5,), AT_ONCE),
    ("gaps", (flip, more), (0.0, 0.3, 1.0), DECODED),
    ("gaps", ANY, (mutations.last_gap,), DECODED),
    ("split_positions", (flip, more, less), (0.0,), OTHER_TENSOR),
    ("other", (flip, more, swap), (0.0, 1.0), OTHER_TENSOR),
]
# A tensor without its last entry.
CUT = {
    "luts": AT_ONCE,
    "encoded_exponent": DECODED,
    "sign_mantissa": AT_ONCE,
    "output_positions": AT_ONCE,
    "gaps": AT_ONCE,
    "split_positions": OTHER_TENSOR,
    "other": OTHER_NAME,
}
# In the header: pattern, replacement.
TEXT = [
    (r"\.gaps", ".gapz", AT_ONCE),
    (r"\.split_positions", ".split_position_", AT_ONCE),
    ('"U8"', '"I8"', AT_ONCE),
    (r'"data_offsets":\[0,', '"data_offsets":[1,', AT_ONCE),
    (r'"shape":\[(\d)', r'"shape":[-', AT_ONCE),
    (r"\{", "[", AT_ONCE),
    (r"oracle\.marker", "oracle.markes", OTHER_NAME),
]
# In the description.
DESCRIPTION = [
    ("df11-self-describing/1", "df11-self-describing/2", "structure"),
    (r"df11\.stamp", "df11.stamq", "structure"),
    (r'df11\.names":"e', 'df11.names":"f', "structure"),
    (r'df11\.source_header":"e', 'df11.source_header":"f', "structure"),
    # The first digit of the first tensor's hash.
    (r'(tensors\\":\\")[1-9a-f]', r"\g<1>0", "hash"),
]
LEVELS = ("structure", "hash", "sample", "full")


def damages(subject: Subject, target: Path) -> Iterator[tuple[str, Seen, Tensors | None]]:
    """Writes one damaged file after the other: what was done, who has to see it, the tensors if their sizes stay."""
    for field, changes, places, seen in TABLE:
        if field == "split_positions" and len(subject.weights) == 1:
            continue
        for change in changes:
            for place in places:
                tensors = mutations.changed(subject, field, change, place)
                mutations.write_like(subject.file, tensors, target)
                where = place.__name__ if callable(place) else place
                yield f"{field} {change.__name__} {where}", seen, tensors
    for field, seen in CUT.items():
        if field == "split_positions" and len(subject.weights) == 1:
            continue
        mutations.write_like(subject.file, mutations.cut(subject, field), target)
        yield f"{field} cut", seen, None
    for pattern, new, seen in TEXT:
        target.write_bytes(mutations.with_text(subject.file, pattern, new))
        yield f"header {pattern}", seen, None
    for pattern, new, level in DESCRIPTION if subject.described else []:
        target.write_bytes(mutations.with_text(subject.file, pattern, new))
        yield f"header {pattern}", Seen(level, None, level), None
    raw = subject.file.read_bytes()
    for what, changed in (
        ("a byte less", raw[:-1]),
        ("a byte more", raw + b"\0"),
        ("header one longer", bytes([raw[0] ^ 1]) + raw[1:]),
    ):
        target.write_bytes(changed)
        yield what, AT_ONCE, None


def verify(df11: Path, subject: Subject, file: Path, level: str, against: bool) -> tuple[str | None, list[str]]:
    """The error code, if any; and what the level says that it cannot see."""
    command: list[str | Path] = [df11, "verify", file, "--level", level, "--samples", "0", "--threads", "1", "--json"]
    if against:
        command += ["--against", subject.source, "--architectures", subject.definitions]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    report = json.loads(done.stdout)
    if done.returncode == 0:
        return None, report["unseen"]
    error = report["error"]
    assert done.returncode in (3, 4) and error["path"] == str(file) and error["hint"], error
    return error["code"], []


def misses(df11: Path, subject: Subject, file: Path, seen: Seen, tensors: Tensors | None) -> Iterator[str]:
    """What is not as it has to be about one damaged file."""
    same = tensors is not None and mutations.same_weights(subject, tensors)
    for against in (False, True):
        must = seen.described if subject.described else seen.source if against else seen.plain
        levels = [level for level in LEVELS if subject.described or level != "hash"]
        if against:
            # What decodes to the same weights is the same with a source.
            must = must if must == "structure" or not same or subject.described else seen.plain
            levels = ["structure", "full"]
        for level in levels:
            code, unseen = verify(df11, subject, file, level, against)
            if must is not None and LEVELS.index(level) >= LEVELS.index(must) and code is None:
                yield f"{level}{' with the source' * against} does not see it"
            if (
                level == "full"
                and code is None
                and not same
                and (against or not any("other weights" in u for u in unseen))
            ):
                yield f"full{' with the source' * against} lets other weights through and does not say so"


@pytest.mark.timeout(900)
def test_every_damage_is_seen(df11: Path, subject: Subject, scratch: Path) -> None:
    file = scratch / "damaged.safetensors"
    wrong, count = [], 0
    for what, seen, tensors in damages(subject, file):
        count += 1
        wrong += [f"{what}: {miss}" for miss in misses(df11, subject, file, seen, tensors)]
    assert wrong == []
    assert count >= 60


def test_a_sound_file_is_sound(df11: Path, subject: Subject) -> None:
    for against in (False, True):
        for level in LEVELS:
            if subject.described or level != "hash":
                assert verify(df11, subject, subject.file, level, against)[0] is None
    assert mutations.same_weights(subject, subject.tensors())


def random_units(count: int) -> Iterator[tuple[np.ndarray, Tensors]]:
    """Units of the official encoder of every kind, redrawn where it crashes or the kernel would hang."""
    rng = np.random.default_rng(1000)
    small, falling = generators.small_histograms(rng), generators.geometric_histograms(rng)
    while count > 0:
        kind = count % 5
        if kind == 0:
            weights = next(small)
        elif kind == 1:
            weights = next(falling)
        elif kind == 2:
            weights = generators.gaussian(int(rng.integers(1, 900)), count)
        elif kind == 3:
            weights = generators.many_tables(int(rng.integers(2, 18)), rng)
        elif count % 25 == 4:
            # The last code reaches into another kernel chunk.
            weights = draw(CHUNK_BITS + int(rng.integers(1, 12)), rng, True).weights
        else:
            weights = generators.gaussian(int(rng.integers(1, 60)), count)
        unit = encode_unit([weights])
        if not unit.crashed and mutations.decoded(unit.tensors) is not None:
            count -= 1
            yield weights, unit.tensors


@pytest.mark.timeout(600)
def test_no_false_alarm(df11: Path, scratch: Path) -> None:
    """1,000 units of the official encoder, in four files."""
    drawn = list(random_units(1000))
    short = [
        unit
        for _, unit in drawn
        if unit["output_positions"].array.size // 4 == -(-unit["encoded_exponent"].array.size // 4096)
    ]
    assert len(short) >= 2, "units without the last position"
    for start in range(0, len(drawn), 250):
        part = {f"single.{start + index}": unit for index, unit in enumerate(drawn[start : start + 250])}
        tensors = {f"{name}.{field}": tensor for name, (_, unit) in part.items() for field, tensor in unit.items()}
        file, source = scratch / "units-DF11.safetensors", scratch / "units.safetensors"
        write_safetensors(file, tensors | {"oracle.marker": MARKER})
        write_safetensors(source, source_of({name: [weights] for name, (weights, _) in part.items()}))
        (scratch / "oracle-units.toml").write_text(DEFINITION)
        whole = Subject("units", file, source, scratch, "", [], False)
        for level, against in (("structure", False), ("sample", False), ("full", False), ("full", True)):
            assert verify(df11, whole, file, level, against)[0] is None
