"""Our decoder on data that others wrote and published."""
