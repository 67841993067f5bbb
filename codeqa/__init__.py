"""CodeQA: ask questions about a code base, answered with cited code, on your own machine.

from codeqa import load_settings, open_engine, whole_answer

with open_engine(load_settings(), "/path/to/repository") as engine:
    engine.index.run()
    print(whole_answer(engine.ask("how is a request dispatched?")).text)
"""

# Nothing is imported here: with `python -m codeqa` the working directory still comes first in the
# import path, and files of a repository there would take the place of libraries.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from codeqa.engine import Answer, Engine, load_settings, open_engine, whole_answer

__version__ = "0.1.0"
__all__ = ["Answer", "Engine", "__version__", "load_settings", "open_engine", "whole_answer"]


def __getattr__(name: str) -> object:
    """Load one of the names above when it is used: `codeqa --version` needs none of them."""
    if name not in __all__:
        raise AttributeError(f"module 'codeqa' has no attribute {name!r}")
    from codeqa import engine

    value: object = getattr(engine, name)
    return value
