"""Tests of the architecture definitions, against headers of published files."""
