"""What is published: versions, wheels, the registry's archive."""
