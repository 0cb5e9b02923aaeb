"""Runs PTX text on the CPU, as far as the DF11 decode kernel needs it: all threads of a launch side by side in numpy.

Threads that stand at different instructions take turns: the foremost in the text goes last, so that a loop is left
together. A register is an array with an entry for each thread; memory knows which of its bytes were allocated. About as
fast as 100,000 weights a second.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

# Of one launch, as a loader makes it: nothing asks for more.
SHARED_MEMORY_LIMIT = 48 * 1024
# Turns after which a launch counts as one that never ends.
MAX_STEPS = 200_000
ALIGNMENT = 256

U64 = np.uint64
INSTRUCTION = re.compile(r"(?:@(!?)(%p\d+)\s+)?([a-z][\w.]*)\s*(.*?);", re.DOTALL)
SPECIAL = ("%tid.x", "%ctaid.x", "%ntid.x")


class Fault(RuntimeError):
    """An access outside what was allocated, or a launch that is not possible or never ends."""


class Memory:
    """Global memory: pieces of exactly the sizes asked for, with room between them that is nobody's."""

    def __init__(self) -> None:
        self._bytes = np.zeros(ALIGNMENT, np.uint8)
        self._mapped = np.zeros(ALIGNMENT, bool)

    def allocate(self, content: np.ndarray) -> int:
        """A piece with this content; returns its address."""
        raw = np.frombuffer(content.tobytes(), np.uint8)
        address = self._bytes.size
        room = -(-raw.size // ALIGNMENT) * ALIGNMENT + ALIGNMENT - raw.size
        self._bytes = np.concatenate([self._bytes, raw, np.zeros(room, np.uint8)])
        self._mapped = np.concatenate([self._mapped, np.ones(raw.size, bool), np.zeros(room, bool)])
        return address

    def content(self, address: int, size: int) -> np.ndarray:
        return self._bytes[address : address + size]

    def places(self, addresses: np.ndarray, size: int) -> np.ndarray:
        at = addresses.astype(np.int64)[:, None] + np.arange(size)
        if at.size and (at.min() < 0 or at.max() >= self._bytes.size or not self._mapped[at].all()):
            raise Fault("an access outside what was allocated")
        return at

    def load(self, addresses: np.ndarray, size: int) -> np.ndarray:
        return _join(self._bytes[self.places(addresses, size)])

    def store(self, addresses: np.ndarray, size: int, values: np.ndarray) -> None:
        self._bytes[self.places(addresses, size)] = _split(values, size)


def _join(parts: np.ndarray) -> np.ndarray:
    return sum((parts[:, i].astype(U64) << U64(8 * i) for i in range(parts.shape[1])), np.zeros(len(parts), U64))


def _split(values: np.ndarray, size: int) -> np.ndarray:
    return np.stack([(values >> U64(8 * i)).astype(np.uint8) for i in range(size)], axis=1)


@dataclass
class Kernel:
    """A kernel's instructions: (guard, whether it is negated, opcode, operands)."""

    parameters: list[str]
    instructions: list[tuple[str, bool, list[str], list[str]]] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str, name: str) -> "Kernel":
        text = re.sub(r"//[^\n]*", "", text)
        head, body = re.search(rf"\.entry {name}\((.*?)\)\s*{{(.*)}}", text, re.DOTALL).groups()
        kernel = cls(re.findall(r"\.param \.\w+ (\w+)", head))
        for part in re.split(r"(\$\w+:)", re.sub(r"\.reg [^;]*;", "", body)):
            if part.startswith("$"):
                kernel.labels[part[:-1]] = len(kernel.instructions)
                continue
            for negated, guard, opcode, operands in INSTRUCTION.findall(part):
                names = [operand.strip() for operand in operands.split(",")]
                kernel.instructions.append((guard, bool(negated), opcode.split("."), names))
        return kernel

    def launch(self, memory: Memory, grid: int, block: int, shared: int, arguments: list[int]) -> None:
        """Runs it to its end."""
        if shared > SHARED_MEMORY_LIMIT:
            raise Fault(f"{shared} bytes of shared memory, the limit is {SHARED_MEMORY_LIMIT}")
        _Run(self, memory, grid, block, shared, arguments).run()


class _Run:
    """The state of a launch."""

    def __init__(
        self, kernel: Kernel, memory: Memory, grid: int, block: int, shared: int, arguments: list[int]
    ) -> None:
        self.kernel, self.memory = kernel, memory
        threads = grid * block
        self.block_of = np.arange(threads) // block
        self.shared = np.zeros((grid, shared), np.uint8)
        self.parameters = dict(zip(kernel.parameters, arguments, strict=True))
        self.registers: dict[str, np.ndarray] = {}
        special = (np.arange(threads) % block, self.block_of, np.full(threads, block))
        self.special = {name: values.astype(U64) for name, values in zip(SPECIAL, special, strict=True)}
        self.at = np.zeros(threads, np.int64)
        self.ended, self.waiting = np.zeros(threads, bool), np.zeros(threads, bool)

    def run(self) -> None:
        for _ in range(MAX_STEPS):
            ready = ~self.ended & ~self.waiting
            if not ready.any():
                if self.ended.all():
                    return
                # Every thread of every block has come to the barrier.
                self.waiting[:] = False
                continue
            line = int(self.at[ready].min())
            self.step(line, np.flatnonzero(ready & (self.at == line)))
        raise Fault("the kernel does not end")

    def step(self, line: int, threads: np.ndarray) -> None:
        guard, negated, opcode, operands = self.kernel.instructions[line]
        self.at[threads] = line + 1
        if guard:
            threads = threads[self.registers[guard][threads].astype(bool) != negated]
        match opcode[0]:
            case "bra":
                self.at[threads] = self.kernel.labels[operands[0]]
            case "bar":
                self.waiting[threads] = True
            case "ret":
                self.ended[threads] = True
            case "st":
                self.access(opcode, operands[0], threads, self.value(operands[1], threads))
            case "ld":
                self.put(operands[0], threads, self.access(opcode, operands[1], threads, None))
            case _:
                self.put(operands[0], threads, self.compute(opcode, operands[1:], threads))

    def access(self, opcode: list[str], place: str, threads: np.ndarray, values: np.ndarray | None) -> np.ndarray:
        """A load, or a store of `values`."""
        size = int(opcode[-1][1:]) // 8
        base, offset = re.fullmatch(r"\[([\w%]+)(?:\+(-?\d+))?\]", place).groups()
        if opcode[1] == "param":
            return np.full(threads.size, self.parameters[base], U64)
        addresses = self.value(base, threads) + U64(int(offset or 0) % 2**64)
        if opcode[1] == "global":
            if values is None:
                return self.memory.load(addresses, size)
            self.memory.store(addresses, size, values)
            return values
        at = (addresses & U64(0xFFFFFFFF)).astype(np.int64)[:, None] + np.arange(size)
        if at.size and (at.min() < 0 or at.max() >= self.shared.shape[1]):
            raise Fault("an access outside shared memory")
        rows = self.block_of[threads][:, None]
        if values is None:
            return _join(self.shared[rows, at])
        self.shared[rows, at] = _split(values, size)
        return values

    def value(self, operand: str, threads: np.ndarray) -> np.ndarray:
        """An operand, 64 bits wide; what is above its own width is cut off where it is used."""
        if operand in self.special:
            return self.special[operand][threads]
        if operand.startswith("%"):
            return self.registers[operand][threads] if operand in self.registers else np.zeros(threads.size, U64)
        # The only symbol is that of shared memory, which begins at 0.
        return np.full(threads.size, 0 if operand == "shared_mem" else int(operand) % 2**64, U64)

    def put(self, register: str, threads: np.ndarray, values: np.ndarray) -> None:
        self.registers.setdefault(register, np.zeros(self.at.size, U64))[threads] = values

    def compute(self, opcode: list[str], operands: list[str], threads: np.ndarray) -> np.ndarray:
        kind = opcode[-1]
        values = [self.value(operand, threads) for operand in operands]
        if opcode[0] == "cvt":
            return _cut(_signed(values[0], kind) if kind[0] == "s" else _cut(values[0], kind), opcode[-2])
        if opcode[0] == "setp":
            a, b = (_signed(v, kind) if kind[0] == "s" else _cut(v, kind) for v in values)
            return COMPARISONS[opcode[1]](a, b).astype(U64)
        if opcode[0] == "mul" and opcode[1] == "wide":
            return _cut(values[0], kind) * _cut(values[1], kind)
        if opcode[0] == "shr" and kind[0] == "s":
            return _cut((_signed(values[0], kind) >> values[1].astype(np.int64)).astype(U64), kind)
        if opcode[0] in ("shl", "shr"):
            amount = _cut(values[1], "u32")
            shift = np.left_shift if opcode[0] == "shl" else np.right_shift
            moved = shift(_cut(values[0], kind), np.minimum(amount, U64(63)))
            return _cut(np.where(amount >= U64(_bits(kind)), U64(0), moved), kind)
        return _cut(OPERATIONS[opcode[0]](*(_cut(value, kind) for value in values)), kind)


def _bits(kind: str) -> int:
    return 1 if kind == "pred" else int(kind[1:])


def _cut(values: np.ndarray, kind: str) -> np.ndarray:
    """The bits that a type has, from a wider value."""
    if kind == "global":
        return values
    return values.astype(U64) & U64((1 << _bits(kind)) - 1)


def _signed(values: np.ndarray, kind: str) -> np.ndarray:
    above = U64(64 - _bits(kind))
    return (values << above).astype(np.int64) >> above.astype(np.int64)


def _select_bytes(a: np.ndarray, b: np.ndarray, selector: np.ndarray) -> np.ndarray:
    both, result = b << U64(32) | a, np.zeros(a.size, U64)
    for i in range(4):
        nibble = selector >> U64(4 * i) & U64(7)
        result |= (both >> nibble * U64(8) & U64(0xFF)) << U64(8 * i)
    return result


def _insert(a: np.ndarray, b: np.ndarray, first: np.ndarray, length: np.ndarray) -> np.ndarray:
    mask = ((U64(1) << length) - U64(1)) << first
    return b & ~mask | a << first & mask


COMPARISONS: dict[str, Callable] = {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}
OPERATIONS: dict[str, Callable] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "mad": lambda a, b, c: a * b + c,
    "min": np.minimum,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "not": lambda a: ~a,
    "mov": lambda a: a,
    "cvta": lambda a: a,
    "bfe": lambda a, first, length: a >> first & (U64(1) << length) - U64(1),
    "bfi": _insert,
    "prmt": _select_bytes,
}
