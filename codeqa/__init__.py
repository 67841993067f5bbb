"""CodeQA: ask questions about a code base, answered with cited code, on your own machine."""

__version__ = "0.1.0"
