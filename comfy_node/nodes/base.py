"""What every node of the pack does in the same way."""

from __future__ import annotations

from typing import Any, ClassVar

from ..errors import NodeError
from ..host import console
from ..host.monitor import Monitor, tell_refusal
from ..service.watch import Watch


class Node:
    """An output node whose run ends in what `work` gives, or in one sentence."""

    TITLE: ClassVar[str]
    CATEGORY = "DFloat11"
    FUNCTION = "run"
    OUTPUT_NODE = True

    @staticmethod
    def answer(refusal: str | None) -> bool | str:
        """What VALIDATE_INPUTS gives the host: True, or the sentence, which the browser then shows at once."""
        if refusal is None:
            return True
        tell_refusal(refusal)
        return refusal

    @classmethod
    def IS_CHANGED(cls, unique_id: str = "", **widgets: Any) -> str | float:
        # NaN is equal to nothing, so that the node runs. None comes from a link, whose value is not known yet.
        if None in widgets.values():
            return float("nan")
        try:
            return cls.fingerprint(widgets)
        except NodeError:
            return float("nan")

    @classmethod
    def fingerprint(cls, widgets: dict[str, Any]) -> str | float:
        """Equal to the one before as long as the host may show the last result again. Cheap. Raises NodeError."""
        return float("nan")

    def run(self, unique_id: str = "", **widgets: Any) -> dict[str, Any]:
        watch = Watch(self.TITLE, Monitor(unique_id))
        try:
            return self.work(watch, **widgets)
        except NodeError as error:
            watch.fail(str(error))
            console.hide_tracebacks(NodeError)
            # The browser shows the traceback of every exception; raised anew, it is as short as it can be.
            raise NodeError(str(error), error.code) from None

    def work(self, watch: Watch, **widgets: Any) -> dict[str, Any]:
        """Does what the widgets say. Gives outputs (`result`) and what the browser shows (`ui`). Raises NodeError."""
        raise NotImplementedError
