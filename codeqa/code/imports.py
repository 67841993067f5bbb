"""Decide whether an import specifier leads to a certain file.

`languages.toml` names the rule of each language (`import_rule`) and the files that it leads to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from posixpath import basename, dirname, join, normpath

from codeqa.languages import Language, language_called

NONE = 0.0
IMPORTED = 0.9
"""The specifier leads to the file."""
IMPORTED_LOOSELY = 0.7
"""It leads there if some folder on the way is on the search path (`import utils`)."""


def import_evidence(
    language: str, importer: str, module: str, path: str, own_module: str = ""
) -> float:
    """Return the confidence that `module`, imported in `importer`, is the file `path`; 0 for no.

    `own_module` is the address that the repository gives itself (`go.mod`), '' when unknown.
    Languages without a rule give 0.
    """
    of = language_called(language)
    if of.import_rule == "crate" and own_module:
        crate, _, inside = module.partition("::")
        if crate == own_module.replace("-", "_"):
            files = _crate_files("src/", inside.split("::") if inside else [])
            return IMPORTED if path in files else NONE
    elif own_module and f"{module}/".startswith(f"{own_module}/"):
        folder = module[len(own_module) + 1 :]
        return IMPORTED if dirname(path) == folder and path.endswith(of.import_files) else NONE
    if path == importer and not module.startswith(("super", "self", "crate")):
        return NONE
    leads_to = _RULES.get(of.import_rule)
    if leads_to is None or not module or not leads_to(of, importer, module, path):
        return NONE
    if module[0] == "@" and module[1:2] != "/":
        return IMPORTED_LOOSELY
    if not of.source_folders or "." in module:
        return IMPORTED
    file = next(file for file in of.import_files if path.endswith(module + file))
    before = path.removesuffix(module + file).strip("/")
    sure = before in of.source_folders or before == dirname(importer)
    return IMPORTED if sure else IMPORTED_LOOSELY


def without_class(module: str) -> str:
    """Return an address without the class of a receiver behind it."""
    return module[:1] + module[1:].partition("#")[0]


def split_address(module: str) -> tuple[str, str]:
    """Return an address without its last word, and that word."""
    for separator in ("::", "\\", "."):
        if separator in module:
            head, _, tail = module.rpartition(separator)
            return head or separator, tail
    return "", module


def file_names(language: str, module: str) -> set[str]:
    """Return the names, without folders, of the files that an import may lead to."""
    files, of = _relative_files(language, module), language_called(language)
    if of.import_rule != "relative":
        files = [module.replace(".", "/") + file for file in of.import_files]
    return {basename(file) for file in files}


def _dotted(language: Language, importer: str, module: str, path: str) -> bool:
    """Lead `.a.b` from the importing package, `a.b` to the end of any path (src layouts)."""
    words = module.lstrip(".")
    address = words.replace(".", "/")
    if words == module:
        return any(_ends_with(path, address + file) for file in language.import_files)
    package = dirname(importer)
    for _ in range(len(module) - len(words) - 1):
        package = dirname(package)
    files: Iterable[str] = language.package_files
    if words:
        files = [address + file for file in language.import_files]
    return path in [join(package, file) for file in files]


def _relative(language: Language, importer: str, module: str, path: str) -> bool:
    """Lead to paths beside the importer, ends of paths (`@/x`, `$lib/x`) or `@scope/package`."""
    if module.startswith("."):
        address = normpath(join(dirname(importer), module))
        return not address.startswith("..") and path in _relative_files(language.name, address)
    address = module.lstrip("@~#$/")
    if "/" not in module and address == module:
        return False
    addresses = [address]
    if module[0] == "@" and "/" in address:  # @scope/package
        _, name, *inside = module.split("/")
        addresses.append("/".join([name, "src"] + inside))
    files = [file for address in addresses for file in _relative_files(language.name, address)]
    return any(_ends_with(path, file) for file in files)


@lru_cache(1_024)  # of one import, compared with many files
def _relative_files(language: str, address: str) -> list[str]:
    of = language_called(language)
    files = [address]
    files += [address + ending for ending in of.import_files]
    for ending, sources in of.compiled_from.items():
        if address.endswith(ending):
            files.extend(address.removesuffix(ending) + source for source in sources)
    folder = "" if address == "." else address
    return files + [join(folder, f"index{ending}") for ending in of.import_files]


def _package(language: Language, importer: str, module: str, path: str) -> bool:
    """Lead to a package, a class or what is in it, each by the end of a path."""
    if not path.endswith(language.import_files):
        return False
    words = module.split(".")
    file = path.rpartition(".")[0]
    for count in range(1, len(words) + 1):
        address = "/".join(words[:count])
        if _ends_with(file, address) or (count > 1 and _ends_with(dirname(path), address)):
            return True
    return False


def _folder(language: Language, importer: str, module: str, path: str) -> bool:
    """Lead to a folder by the last word that is no version (`/v2`)."""
    words = module.split("/")
    if words[0] in language.standard_packages:
        return False
    if len(words) > 1 and words[-1][:1] == "v" and words[-1][1:].isdigit():
        words.pop()
    return path.endswith(language.import_files) and basename(dirname(path)) == words[-1]


def _in_crate(language: Language, importer: str, module: str, path: str) -> bool:
    """Lead from `crate::`, `self::`, `super::`, a module beside the file or another crate."""
    words = [word for word in module.split("::") if word]
    root, inside = _crate(importer)
    if not words:
        return False
    if words[0] == "crate":
        return path in _crate_files(root, words[1:])
    if words[0] in ("self", "super"):
        if words[0] == "self":
            words = words[1:]
        while words and words[0] == "super":
            # Inside `mod tests { … }` the parent is the file itself.
            if len(words) == 1 and path == importer:
                return True
            inside, words = inside[:-1], words[1:]
        return path in _crate_files(root, inside + words)
    if path in _crate_files(root, inside + words):
        return True
    folder = dirname(path)
    return any(
        _ends_with(folder, f"{crate}/src") and path in _crate_files(folder + "/", words[1:])
        for crate in (words[0].replace("_", "-"), words[0])
    )


def _crate(path: str) -> tuple[str, list[str]]:
    """Return the folder of a file's crate root, ending in a slash, and the file's module path."""
    before, source, _ = path.rpartition("src/")
    root = dirname(path) + "/"
    if source and (not before or before.endswith("/")):
        root = before + source
    if root == "/":
        root, words = "", [path]
    else:
        words = path[len(root) :].removesuffix(".rs").split("/")
    if words[-1] in ("mod", "lib", "main"):
        words.pop()
    return root, words


def _crate_files(root: str, words: list[str]) -> tuple[str, str]:
    """Return the two files that may hold the module `words` of the crate in `root`."""
    if not words:
        return root + "lib.rs", root + "main.rs"
    address = root + "/".join(words)
    return address + ".rs", address + "/mod.rs"


def _ends_with(path: str, ending: str) -> bool:
    """Return whether whole components at the end of `path` are `ending`."""
    return path == ending or path.endswith("/" + ending)


_RULES: dict[str, Callable[[Language, str, str, str], bool]] = {
    "dotted": _dotted,
    "relative": _relative,
    "package": _package,
    "folder": _folder,
    "crate": _in_crate,
}


def resolves_imports(language: str) -> bool:
    """Return whether imports of `language` are resolved to files."""
    return language_called(language).import_rule != ""
