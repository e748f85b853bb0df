"""ToolGen: a model calls a completion tool while it generates the functions of a repository."""
