"""What a file is for, from its path and its first lines.

Only whole path components and whole parts of file names count: `contest.py`, `latest/` and
`attestation/` are source. The order of the questions is the order of precedence: a test of
a vendored library is vendored, generated code in an example is generated.
"""

from __future__ import annotations

import re

from codeqa.text.tokens import word_set

HEAD_BYTES = 2048
"""Where generators write that a file is generated."""

_VENDORED = word_set(
    "vendor vendors vendored _vendor third_party third-party thirdparty 3rdparty 3rd-party "
    "3rd_party node_modules bower_components jspm_packages site-packages deps external "
    "externals extern godeps carthage pods .yarn dist-packages"
)
_VENDORED_AT_TOP = frozenset({"deps", "external", "externals", "extern"})
"""Names that a project's own packages have too: vendored only as a first component."""

_TEST_FOLDERS = word_set(
    "test tests testing testdata test_data test-data testsuite test-suite test_suite testsuites "
    "__tests__ __mocks__ __snapshots__ __fixtures__ unittest unittests unit_tests unit-tests "
    "integration_tests integration-tests integration_test integrationtest integrationtests "
    "integration-test functional_tests e2e cypress spec specs rspec fixtures mocks js_tests "
    "js-tests androidtest iostests commontest jvmtest jstest nativetest uitests testfixtures "
    "test-fixtures selftests regress regression"
)
_SOURCE_LOOKALIKES = frozenset({"testing"})
"""Folder names that hold a project's public test tools when they lie inside its source."""

_TEST_FOLDER_ENDINGS = (".tests", ".test", ".unittests", ".integrationtests")

_TEST_FILE = re.compile(
    r"""(?:
        test_.*\.(?:py|pyi|rb|c|cc|cpp|lua|sh|bash|sql|php|jl|el|zig|nim)
      | tests?\.(?:py|rb|js|mjs|cjs|ts|tsx|jsx|rs|c|cpp|php|lua|sh|sql|clj)
      | .*_test\.(?:go|py|rb|c|cc|cpp|cxx|h|js|mjs|ts|tsx|dart|ex|exs|rs|clj|lua|sh|php|erl|ml|zig)
      | .*_tests\.(?:py|rs|c|cc|cpp|js|ts|clj|rb)
      | .*_(?:unit|browser)test\.(?:cc|cpp|c)
      | .*_spec\.(?:rb|lua|js|ts|cr|ex|exs)
      | .*[.-](?:test|tests|spec|specs|e2e|cy|stories)
        \.(?:js|mjs|cjs|ts|mts|cts|tsx|jsx|vue|svelte|coffee|dart|lua)
      | conftest\.py
      | .*\.(?:bats|snap|feature)
      | (?:jest|vitest|karma|playwright|cypress)\.(?:config|setup|conf)\..*
    )""",
    re.VERBOSE,
)
_TEST_TYPE_FILE = re.compile(
    r"(?:[A-Z]\w*(?:Test|Tests|TestCase|TestSuite|IT|ITCase|Spec|Specs)|Test[A-Z]\w*|[A-Z]\w*_Test)"
    r"\.(?:java|kt|kts|scala|groovy|cs|swift|php|fs|vb|cpp|cc|m|mm|dart)"
)
"""Names of types, where the capital tells `LatestTest` from `Latest`."""

_EXAMPLE_FOLDERS = word_set(
    "example examples sample samples demo demos tutorial tutorials quickstart quickstarts "
    "playground playgrounds cookbook showcase example-app getting-started snippets"
)
_EXAMPLE_FILE = re.compile(
    r"(?:example|sample|demo)s?(?:[._-].*)?|.*[._-](?:example|sample)s?(?:\..*)?"
)

_BENCHMARK_FOLDERS = word_set(
    "bench benches benchmark benchmarks benchsuite perf perftest perftests perf_tests "
    "performance-tests microbench microbenchmarks jmh"
)
_BENCHMARK_FILE = re.compile(
    r"(?:bench(?:mark)?[_-].*|.*[_.-]bench(?:mark)?s?)"
    r"\.(?:py|go|rs|js|ts|mjs|rb|c|cc|cpp|java|exs|php)"
)
_BENCHMARK_TYPE_FILE = re.compile(r"[A-Z]\w*Benchmarks?\.(?:java|kt|scala|cs|swift)")

_DOCUMENT_FOLDERS = word_set("doc docs documentation")
_DOCUMENT_FOLDERS_AT_TOP = word_set("man manual wiki website adr adrs rfcs javadoc")
"""Names that a project's own packages have too: documents only as a first component."""
_DOCUMENT_ENDINGS = (
    ".md", ".markdown", ".mdx", ".rst", ".adoc", ".asciidoc", ".txt", ".org", ".tex",
    ".textile", ".pod", ".rdoc", ".1", ".3", ".5", ".7", ".8",
)  # fmt: skip
_NOT_DOCUMENTS = frozenset(
    ["cmakelists.txt", "robots.txt", "requirements.txt", "constraints.txt", "meson_options.txt"]
)
_REQUIREMENTS = re.compile(r"(?:requirements|constraints)[\w.-]*\.txt")
_DOCUMENT_FILE = re.compile(
    r"(?:readme|changelog|changes|history|news|license|licence|copying|notice|authors|"
    r"contributors|contributing|maintainers|security|code_of_conduct|install|todo|thanks)"
    r"(?:[._-][\w.-]*)?"
)

_GENERATED_FILE = re.compile(
    r""".*(?:
        _pb2(?:_grpc)?\.pyi? | \.pb(?:\.gw)?\.go | _grpc\.pb\.go | \.pb\.(?:cc|h|rs|swift|dart)
      | _pb\.(?:js|ts|d\.ts|rb) | _grpc_pb\.(?:js|d\.ts) | grpc\.swift | \.twirp\.go
      | \.g\.(?:dart|cs|kt|i\.cs) | \.freezed\.dart | \.designer\.(?:cs|vb) | \.generated\.\w+
      | _generated\.\w+ | \.gen\.(?:go|ts|js|rs|cs) | _gen\.go | zz_generated.*\.go
      | \.po | \.pot  # catalogues of the source's own strings
      | _string\.go | _easyjson\.go | \.tsbuildinfo | _autogen\.\w+ | \.yy?\.go
    )""",
    re.VERBOSE,
)
_GENERATED_FOLDERS = frozenset(
    ["generated", "__generated__", "autogen", "gen-src", "generated-sources"]
)
_GENERATED_MARK = re.compile(
    rb"^[^\w\n]{0,12}code generated .{0,200}do not (?:edit|modify)"
    rb"|^[^\w\n]{0,12}@generated\b"
    rb"|^[^\w\n]{0,12}<auto-?generated\b"
    rb"|^[^\w\n]{0,12}(?:this (?:file|code|class) (?:is|was|has been) |file )?"
    rb"(?:auto-?|automatically )generated (?:by|from|using|file|code|with)\b.{0,200}"
    rb"|^[^\w\n]{0,12}generated by .{0,120}do not (?:edit|modify)"
    rb"|^[^\w\n]{0,12}generated by the protocol buffer compiler"
    rb"|^[^\w\n]{0,12}autogenerated (?:by|from)\b",
    re.IGNORECASE | re.MULTILINE,
)


def role_of(path: str, head: bytes = b"") -> str:
    """One of `types.ROLES` for a repo-relative path; `head` is the beginning of the file."""
    *parts, name = path.split("/")
    folders = [part.lower() for part in parts]
    small = name.lower()
    head = head[:HEAD_BYTES]

    def inside(names: frozenset[str], only_at_top: frozenset[str] = frozenset()) -> bool:
        return any(
            folder in names and (position == 0 or folder not in only_at_top)
            for position, folder in enumerate(folders)
        )

    if inside(_VENDORED, _VENDORED_AT_TOP):
        return "vendored"
    if (
        inside(_GENERATED_FOLDERS)
        or _GENERATED_FILE.fullmatch(small)
        or (b"generated" in head.lower() and _GENERATED_MARK.search(head))
    ):
        return "generated"
    if (
        inside(_BENCHMARK_FOLDERS)
        or _BENCHMARK_FILE.fullmatch(small)
        or _BENCHMARK_TYPE_FILE.fullmatch(name)
    ):
        return "benchmark"
    if (
        inside(_TEST_FOLDERS, _SOURCE_LOOKALIKES)
        or _TEST_FILE.fullmatch(small)
        or _TEST_TYPE_FILE.fullmatch(name)
        # `Project.Tests/` of .NET; `ProjectTests/` of Swift is met by its files' names
        or any(folder.endswith(_TEST_FOLDER_ENDINGS) for folder in folders)
    ):
        return "test"
    example = inside(_EXAMPLE_FOLDERS)
    if _is_document(folders, small) and (not example or small.endswith(_DOCUMENT_ENDINGS)):
        return "document"
    return "example" if example or _EXAMPLE_FILE.fullmatch(small) else "source"


def _is_document(folders: list[str], small: str) -> bool:
    if not _DOCUMENT_FOLDERS.isdisjoint(folders[:2]):
        return True
    if not _DOCUMENT_FOLDERS_AT_TOP.isdisjoint(folders[:1]):
        return True
    if small in _NOT_DOCUMENTS or _REQUIREMENTS.fullmatch(small):
        return False
    return small.endswith(_DOCUMENT_ENDINGS) or bool(
        "." not in small and _DOCUMENT_FILE.fullmatch(small)
    )
