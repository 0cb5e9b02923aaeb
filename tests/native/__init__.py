"""The installed wheel: the module `df11_native` and its `df11` command, on real files."""
