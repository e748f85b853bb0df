"""lookuplab: a kit to measure what changes when a code model may look something up.

It has reproducible notebooks for three papers (CloudAPIBench with documentation augmented
generation, retrieval-augmented data-science code, ToolGen), built on one thin library.
"""

__version__ = "0.1.0"
