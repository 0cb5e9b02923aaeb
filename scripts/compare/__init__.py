"""This program beside others, and beside plain copying, in one run on the same files: what `make bench` prints."""
