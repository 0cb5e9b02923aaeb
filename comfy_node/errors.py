"""The one exception that people see."""


class NodeError(Exception):
    """A refusal or failure that was foreseen. `str()` says what, where and what to do."""
