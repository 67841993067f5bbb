"""CodeQA: ask questions about a code base, answered with cited code, on your own machine.

from codeqa import open_engine

with open_engine("/path/to/repository") as engine:
    engine.index()
    print(engine.ask("how is a request dispatched?").whole.text)
"""

# Nothing is imported here: with `python -m codeqa` the working directory is still the first to be
# looked into, and files of a repository there would take the place of libraries.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from codeqa.api import CodeEngine, StreamedAnswer, WholeAnswer, open_engine

__version__ = "0.1.0"
__all__ = ["CodeEngine", "StreamedAnswer", "WholeAnswer", "__version__", "open_engine"]


def __getattr__(name: str) -> object:
    """The names above, loaded when they are used: the command's `--version` needs none of them."""
    if name not in __all__:
        raise AttributeError(f"module 'codeqa' has no attribute {name!r}")
    from codeqa import api

    found: object = getattr(api, name)
    return found
