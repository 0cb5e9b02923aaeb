"""Installing the package and the pack as people do, on every Python and in real servers."""
