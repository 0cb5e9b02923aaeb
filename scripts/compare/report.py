"""Tables in Markdown."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Ratio:
    """A ratio and what it shall be: at most, or at least, a number."""

    name: str
    value: float
    at_most: float | None = None
    at_least: float | None = None

    def row(self) -> list[str]:
        reached = (self.at_most is None or self.value <= self.at_most) and (
            self.at_least is None or self.value >= self.at_least
        )
        aim = f"at most {self.at_most:g}" if self.at_most is not None else f"at least {self.at_least:g}"
        return [self.name, number(self.value), aim, "yes" if reached else "**no**"]


@dataclass
class Section:
    """One table of figures, and ratios of them."""

    title: str
    columns: Sequence[str]
    rows: list[list[str]] = field(default_factory=list)
    ratios: list[Ratio] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def show(self) -> None:
        print(f"\n### {self.title}\n")
        for note in self.notes:
            print(f"{note}\n")
        table(self.columns, self.rows)
        if self.ratios:
            print()
            table(["ratio", "found", "aim", "reached"], [ratio.row() for ratio in self.ratios])


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    print(f"| {' | '.join(columns)} |")
    print(f"|{'---|' * len(columns)}")
    for row in rows:
        print(f"| {' | '.join(row)} |", flush=True)


def number(value: float) -> str:
    """Three digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
