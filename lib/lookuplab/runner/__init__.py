"""Runs notebooks headlessly: finds them, checks what they are given, executes them in parallel on papermill."""
