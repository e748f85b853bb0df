"""ToolGen: a completion tool inside decoding (repository-level code generation)."""
