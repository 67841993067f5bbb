"""Whether an import specifier leads to a certain file, language by language."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from posixpath import basename, dirname, join, normpath

from codeqa.text.tokens import word_set

NONE = 0.0
IMPORTED = 0.9
"""The specifier leads to the file."""
IMPORTED_LOOSELY = 0.7
"""It leads there if some folder on the way is on the search path (`import utils`)."""

_SOURCE_FOLDERS = frozenset({"", "src", "lib", "python", "source"})
"""Folders that are surely on Python's search path."""

_PYTHON_FILES = (".py", "/__init__.py", ".pyi", "/__init__.pyi")
_SCRIPT_ENDINGS = (".ts", ".tsx", ".d.ts", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs", ".vue")
_SCRIPT_OUTPUT = {".js": (".ts", ".tsx"), ".jsx": (".tsx",), ".mjs": (".mts",), ".cjs": (".cts",)}
"""What a TypeScript import that names the compiler's output is made from."""
_JVM_ENDINGS = (".java", ".kt", ".scala", ".groovy")

_GO_STANDARD = word_set("""
archive bufio builtin bytes cmp compress container context crypto database debug embed encoding
errors expvar flag fmt go hash html image index io iter log maps math mime net os path plugin
reflect regexp runtime slices sort strconv strings structs sync syscall testing text time unicode
unique unsafe weak C
""")
"""First words of Go's standard library: its packages are never folders of a repository."""


def import_evidence(
    language: str, importer: str, module: str, path: str, go_module: str = ""
) -> float:
    """How surely `module`, imported in the file `importer`, is the file `path`; 0 for not at all.

    `go_module` is the path that the repository's `go.mod` declares, '' when unknown. Languages
    without a rule here give 0.
    """
    if go_module and f"{module}/".startswith(f"{go_module}/"):
        folder = module[len(go_module) + 1 :]
        return IMPORTED if dirname(path) == folder and path.endswith(".go") else NONE
    if path == importer and not module.startswith(("super", "self", "crate")):
        return NONE
    leads_to = _RULES.get(language)
    if leads_to is None or not module or not leads_to(importer, module, path):
        return NONE
    if module[0] == "@" and module[1:2] != "/":
        return IMPORTED_LOOSELY
    if language != "python" or "." in module:
        return IMPORTED
    before = path.removesuffix(".py").removesuffix("/__init__").removesuffix(module).strip("/")
    sure = before in _SOURCE_FOLDERS or before == dirname(importer)
    return IMPORTED if sure else IMPORTED_LOOSELY


def split_address(module: str) -> tuple[str, str]:
    """An address without its last word, and that word."""
    for separator in ("::", "\\", "."):
        head, found, tail = module.rpartition(separator)
        if found:
            return head or separator, tail
    return "", module


def _python(importer: str, module: str, path: str) -> bool:
    """`.a.b` from the importing package, `a.b` as the end of any path (src layouts)."""
    words = module.lstrip(".")
    address = words.replace(".", "/")
    if words == module:
        return any(_ends_with(path, address + file) for file in _PYTHON_FILES)
    package = dirname(importer)
    for _ in range(len(module) - len(words) - 1):
        package = dirname(package)
    files = [address + file for file in _PYTHON_FILES] if words else ["__init__.py"]
    return path in [join(package, file) for file in files]


def _script(importer: str, module: str, path: str) -> bool:
    """JavaScript and TypeScript: relative files and folders; `@/x` and `src/x` by their end, of
    `@scope/package` the folder of its name."""
    if module.startswith("."):
        address = normpath(join(dirname(importer), module))
        return not address.startswith("..") and path in _script_files(address)
    if "/" not in module:
        return False
    if module[0] == "@" and module[1] != "/":
        _, name, *inside = module.split("/")
        module = "/".join((name, "src", *inside))
    address = module.removeprefix("@/").removeprefix("~/").removeprefix("#")
    return any(_ends_with(path, file) for file in _script_files(address))


@lru_cache(1_024)  # of one import, compared with many files
def _script_files(address: str) -> list[str]:
    files = [address, *(address + ending for ending in _SCRIPT_ENDINGS)]
    for ending, sources in _SCRIPT_OUTPUT.items():
        if address.endswith(ending):
            files.extend(address.removesuffix(ending) + source for source in sources)
    folder = "" if address == "." else address
    return [*files, *(join(folder, f"index{ending}") for ending in _SCRIPT_ENDINGS)]


def _jvm(importer: str, module: str, path: str) -> bool:
    """Java and its kin: a package, or a class or what is in it, is the end of a path."""
    if not path.endswith(_JVM_ENDINGS):
        return False
    words = module.split(".")
    file = path.rpartition(".")[0]
    addresses = ["/".join(words[:kept]) for kept in range(1, len(words) + 1)]
    return any(_ends_with(file, address) for address in addresses) or any(
        _ends_with(dirname(path), address) for address in addresses[1:]
    )


def _go(importer: str, module: str, path: str) -> bool:
    """An import path is a folder, known by its last word."""
    words = module.split("/")
    if words[0] in _GO_STANDARD:
        return False
    if len(words) > 1 and words[-1][:1] == "v" and words[-1][1:].isdigit():
        words.pop()
    return path.endswith(".go") and basename(dirname(path)) == words[-1]


def _rust(importer: str, module: str, path: str) -> bool:
    """`crate::`, `self::`, `super::`, a module beside the file, or another crate's folder."""
    words = [word for word in module.split("::") if word]
    root, inside = _crate(importer)
    if not words:
        return False
    if words[0] == "crate":
        return path in _rust_files(root, words[1:])
    if words[0] in ("self", "super"):
        if words[0] == "self":
            words = words[1:]
        while words and words[0] == "super":
            # Inside `mod tests { … }` the parent is the file itself.
            if len(words) == 1 and path == importer:
                return True
            inside, words = inside[:-1], words[1:]
        return path in _rust_files(root, [*inside, *words])
    if path in _rust_files(root, [*inside, *words]):
        return True
    folder = dirname(path)
    return any(
        _ends_with(folder, f"{crate}/src") and path in _rust_files(folder + "/", words[1:])
        for crate in (words[0].replace("_", "-"), words[0])
    )


def _crate(path: str) -> tuple[str, list[str]]:
    """The folder of a file's crate root (with a slash at its end) and the file's module path."""
    before, found, _ = path.rpartition("src/")
    root = before + found if found and (not before or before.endswith("/")) else dirname(path) + "/"
    words = path[len(root) :].removesuffix(".rs").split("/") if root != "/" else [path]
    if words[-1] in ("mod", "lib", "main"):
        words.pop()
    return (root if root != "/" else "", words)


def _rust_files(root: str, words: list[str]) -> tuple[str, str]:
    """The two files that may hold the module `words` of the crate whose sources are in `root`."""
    if not words:
        return root + "lib.rs", root + "main.rs"
    address = root + "/".join(words)
    return address + ".rs", address + "/mod.rs"


def _ends_with(path: str, ending: str) -> bool:
    """Whether whole components at the end of `path` are `ending`."""
    return path == ending or path.endswith("/" + ending)


_RULES: dict[str, Callable[[str, str, str], bool]] = {
    "python": _python,
    "javascript": _script,
    "typescript": _script,
    "java": _jvm,
    "kotlin": _jvm,
    "scala": _jvm,
    "go": _go,
    "rust": _rust,
}

RESOLVED_LANGUAGES = frozenset(_RULES)
"""Languages whose imports are resolved to files."""
