"""From an import specifier to the files that it can mean, language by language.

Each resolver takes the index of paths, the importing file and an address, and returns
places: a file and the names that are left of the address, to be looked up in that file
(`flask.Flask` is `flask/__init__.py` and `Flask`). No place: the address leads out of the
repository. None: the language has no resolver, nothing can be said.
"""

from __future__ import annotations

from collections.abc import Callable
from posixpath import dirname
from typing import NamedTuple

from codeqa.symbols.paths import PathIndex, relative


class Place(NamedTuple):
    """A file that an address can mean, and the names in it that are left of the address."""

    path: str
    names: tuple[str, ...] = ()


Places = tuple[Place, ...]
Resolver = Callable[[PathIndex, str, str], Places]

_SCRIPT_ENDINGS = (".ts", ".tsx", ".d.ts", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs", ".vue")
_SCRIPT_OUTPUT = {".js": (".ts", ".tsx"), ".jsx": (".tsx",), ".mjs": (".mts",), ".cjs": (".cts",)}
"""What a TypeScript import that names the compiler's output is made from."""

_JVM_ENDINGS = (".java", ".kt", ".scala", ".groovy")

_GO_STANDARD = frozenset(
    (
        "archive", "bufio", "builtin", "bytes", "cmp", "compress", "container", "context",
        "crypto", "database", "debug", "embed", "encoding", "errors", "expvar", "flag", "fmt",
        "go", "hash", "html", "image", "index", "io", "iter", "log", "maps", "math", "mime",
        "net", "os", "path", "plugin", "reflect", "regexp", "runtime", "slices", "sort",
        "strconv", "strings", "structs", "sync", "syscall", "testing", "text", "time", "unicode",
        "unique", "unsafe", "weak", "C",
    )
)  # fmt: skip
"""First words of Go's standard library: its packages are never folders of a repository."""


def resolve(index: PathIndex, language: str, importer: str, module: str) -> Places | None:
    """The places that `module` can mean in a file of `language`, best first."""
    resolver = _RESOLVERS.get(language)
    return resolver(index, importer, module) if resolver is not None and module else None


def python(index: PathIndex, importer: str, module: str) -> Places:
    """`.a.b` from the importing package, `a.b` as the end of any path (src layouts)."""
    stripped = module.lstrip(".")
    words = [word for word in stripped.split(".") if word]
    dots = len(module) - len(stripped)
    if dots:
        base = dirname(importer)
        for _ in range(dots - 1):
            base = dirname(base)
        return _python_under(index, base + "/" if base else "", words)
    for kept in range(len(words), 0, -1):
        address = "/".join(words[:kept])
        found = [
            path
            for ending in (".py", "/__init__.py", ".pyi", "/__init__.pyi")
            for path in index.ending(address + ending, importer)
        ]
        if found:
            return tuple(Place(path, tuple(words[kept:])) for path in found)
    return ()


def _python_under(index: PathIndex, base: str, words: list[str]) -> Places:
    for kept in range(len(words), -1, -1):
        address = base + "/".join(words[:kept])
        ends = (".py", "/__init__.py", ".pyi", "/__init__.pyi") if kept else ("__init__.py",)
        if found := index.exact(*(address + end for end in ends)):
            return tuple(Place(path, tuple(words[kept:])) for path in found)
    return ()


def script(index: PathIndex, importer: str, module: str) -> Places:
    """JavaScript and TypeScript: relative files and folders; `@/x` and `src/x` by their end."""
    if module.startswith("."):
        path = relative(importer, module)
        return tuple(Place(found) for found in index.exact(*_script_files(path)))
    address = module.removeprefix("@/").removeprefix("~/").removeprefix("#")
    if "/" not in module:
        return ()
    for candidate in _script_files(address):
        if found := index.ending(candidate, importer):
            return tuple(Place(path) for path in found)
    return ()


def _script_files(path: str) -> list[str]:
    files = [path, *(path + ending for ending in _SCRIPT_ENDINGS)]
    for ending, sources in _SCRIPT_OUTPUT.items():
        if path.endswith(ending):
            files.extend(path.removesuffix(ending) + source for source in sources)
    base = path + "/" if path not in ("", ".") else ""
    return [*files, *(f"{base}index{ending}" for ending in _SCRIPT_ENDINGS)]


def jvm(index: PathIndex, importer: str, module: str) -> Places:
    """Java and its kin: a package or class name is the end of a path."""
    words = module.split(".")
    for kept in range(len(words), 0, -1):
        address = "/".join(words[:kept])
        found = [
            path for ending in _JVM_ENDINGS for path in index.ending(address + ending, importer)
        ]
        if found:
            return tuple(Place(path, tuple(words[kept - 1 :])) for path in found)
        if kept > 1 and (folders := index.folders_ending(address)):
            rest = tuple(words[kept:])
            return tuple(
                Place(path, rest)
                for folder in folders
                for path in index.in_folder(folder)
                if path.endswith(_JVM_ENDINGS)
            )
    return ()


def go(index: PathIndex, importer: str, module: str) -> Places:
    """An import path is a folder: the longest end of it that the repository has."""
    words = module.split("/")
    if words[0] in _GO_STANDARD:
        return ()
    if len(words) > 1 and words[-1][:1] == "v" and words[-1][1:].isdigit():
        words.pop()
    for start in range(len(words)):
        address = "/".join(words[start:])
        folders = [
            folder
            for folder in index.folders_ending(address)
            if any(path.endswith(".go") for path in index.in_folder(folder))
        ]
        if folders:
            exact = [folder for folder in folders if folder == address] or folders[:1]
            return tuple(
                Place(path)
                for folder in exact
                for path in index.in_folder(folder)
                if path.endswith(".go")
            )
    return ()


def rust(index: PathIndex, importer: str, module: str) -> Places:
    """`crate::`, `self::`, `super::`, a module beside the file, or another crate's folder."""
    words = [word for word in module.split("::") if word]
    root, inside = _crate(importer)
    if not words:
        return ()
    if words[0] == "crate":
        return _rust_under(index, root, words[1:])
    if words[0] in ("self", "super"):
        places: list[Place] = []
        level, rest = inside, words
        if words[0] == "self":
            rest = words[1:]
        while rest and rest[0] == "super":
            # Inside `mod tests { … }` the parent is the file itself.
            places.append(Place(importer, tuple(rest[1:])))
            level, rest = level[:-1], rest[1:]
        return (*_rust_under(index, root, [*level, *rest]), *places)
    if found := _rust_under(index, root, [*inside, *words], least=len(inside) + 1):
        return found
    for folder in (words[0].replace("_", "-"), words[0]):
        for base in index.folders_ending(folder + "/src"):
            if found := _rust_under(index, base + "/", words[1:]):
                return found
    return ()


def _crate(path: str) -> tuple[str, list[str]]:
    """The folder of a file's crate root (with a slash at its end) and the file's module path."""
    before, found, _ = path.rpartition("src/")
    root = before + found if found and (not before or before.endswith("/")) else dirname(path) + "/"
    words = path[len(root) :].removesuffix(".rs").split("/") if root != "/" else [path]
    if words[-1] in ("mod", "lib", "main"):
        words.pop()
    return (root if root != "/" else "", words)


def _rust_under(index: PathIndex, root: str, words: list[str], least: int = 0) -> Places:
    for kept in range(len(words), least - 1, -1):
        address = root + "/".join(words[:kept])
        files = (
            (address + ".rs", address + "/mod.rs") if kept else (root + "lib.rs", root + "main.rs")
        )
        if found := index.exact(*files):
            return tuple(Place(path, tuple(words[kept:])) for path in found)
    return ()


_RESOLVERS: dict[str, Resolver] = {
    "python": python,
    "javascript": script,
    "typescript": script,
    "java": jvm,
    "kotlin": jvm,
    "scala": jvm,
    "go": go,
    "rust": rust,
}


NONE = 0.0
IMPORTED = 0.9
"""The specifier leads to the file."""
IMPORTED_LOOSELY = 0.7
"""It leads there if some folder on the way is on the search path (`import utils`)."""


def import_evidence(
    language: str, importer: str, module: str, path: str, go_module: str = ""
) -> float:
    """How surely `module`, imported in `importer`, is the file `path`; 0 when it is not.

    `go_module` is the path that the repository's `go.mod` declares, '' when unknown.
    """
    if language == "go" and go_module:
        inside = module == go_module or module.startswith(go_module + "/")
        folder = module[len(go_module) + 1 :]
        if inside:
            return IMPORTED if dirname(path) == folder and path.endswith(".go") else NONE
    if path == importer and not module.startswith(("super", "self", "crate")):
        return NONE
    for place in resolve(PathIndex([path]), language, importer, module) or ():
        if place.names and language not in _FILES_ARE_CLASSES:
            continue
        return IMPORTED if _is_close(language, importer, module, path) else IMPORTED_LOOSELY
    return NONE


_FILES_ARE_CLASSES = frozenset({"java", "kotlin", "scala"})
_SOURCE_FOLDERS = frozenset({"", "src", "lib", "python", "source"})


def _is_close(language: str, importer: str, module: str, path: str) -> bool:
    """Whether the folders before a module's own path are surely on the search path."""
    if language != "python" or module.startswith(".") or "." in module:
        return True
    before = path.removesuffix(".py").removesuffix("/__init__").removesuffix(module).strip("/")
    return before in _SOURCE_FOLDERS or before == dirname(importer)
