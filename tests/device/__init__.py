"""The check that runs on a machine with a GPU, here with a stand-in for the driver."""
