"""Who may know whom: the rules of docs/ARCHITECTURE.md for the Rust crates, and for code that names architectures."""
