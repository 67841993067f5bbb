"""What a file is, from its path and its content: never indexed, or what it is for.

Left out: binary data, minified code and source maps, lock files, secrets, empty files.
Generated and vendored files are not left out; their role puts them last.

For a role only whole path components and whole parts of file names count: `contest.py`, `latest/`
and `attestation/` are source. The order of the questions is the order of precedence: a test of
a vendored library is vendored, generated code in an example is generated.
"""

from __future__ import annotations

import re

from codeqa.languages import detect
from codeqa.repository.secrets import is_secret_content, is_secret_name
from codeqa.text.tokens import word_set
from codeqa.types import Skipped

_BINARY, _MINIFIED, _SECRET = "binary", "minified", "looks like a secret"

LOCK_FILES = word_set(
    "package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml bun.lock bun.lockb "
    "deno.lock cargo.lock poetry.lock uv.lock pdm.lock pixi.lock pipfile.lock conda-lock.yml "
    "pylock.toml go.sum go.work.sum gemfile.lock composer.lock mix.lock pubspec.lock "
    "podfile.lock package.resolved cartfile.resolved packages.lock.json paket.lock "
    "project.assets.json gradle.lockfile buildscript-gradle.lockfile flake.lock "
    ".terraform.lock.hcl rebar.lock shard.lock stack.yaml.lock cabal.project.freeze "
    "manifest.toml.lock module.bazel.lock buf.lock symfony.lock "
    "requirements.lock requirements-dev.lock requirements-setup.lock"
)
"""Lower-case names of files that tools write and nobody reads."""

BINARY_ENDINGS = word_set(
    "png jpg jpeg gif bmp ico icns webp tif tiff avif heic psd ai eps svgz pdf ps mp3 mp4 m4a "
    "m4v mov avi mkv webm ogg oga ogv wav flac aac mid zip gz tgz bz2 tbz2 xz txz zst 7z rar "
    "lz4 lzma jar war ear aar apk ipa whl egg nupkg deb rpm dmg iso img exe dll so dylib a o "
    "obj lib pdb class pyc pyo pyd wasm elf bin dat db sqlite sqlite3 mdb ldb rdb frm ttf otf "
    "woff woff2 eot doc docx xls xlsx ppt pptx odt ods odp parquet arrow feather avro orc npy "
    "npz pkl pickle joblib h5 hdf5 pt pth onnx safetensors gguf tflite pb.gz mo gmo blend fbx "
    "glb stl dwg swf keystore snap"
)

_MAGIC = (b"%PDF-", b"%!PS", b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh9")
"""How files begin that may hold no NUL in their first 8 KiB."""

SNIFFED_BYTES = 8192
"""git's own rule: a NUL in the first 8 KiB means binary."""

_CONTROL = bytes(code for code in range(32) if code not in b"\t\n\r\f\b\x1b") + b"\x7f"
MAX_CONTROL_SHARE = 0.1
"""Control characters in the beginning of a file, above which it is no text."""

_MINIFIED_NAME = re.compile(r"[.-]min\.(?:js|mjs|cjs|css|html)$")
_WEB_CODE = (".js", ".mjs", ".cjs", ".css", ".jsx", ".ts")
_LONG_LINES_NORMAL = (".ipynb", ".md", ".markdown", ".mdx", ".rst", ".txt", ".adoc", ".csv", ".tsv")
"""Formats whose paragraphs, rows or images are one line each."""

LONG_LINE = 1_000
"""Bytes; nobody writes such a line of code by hand."""
LONG_LINE_WEB = 500
"""Bytes; minifiers often break at this column."""
LONG_SHARE = 0.8
"""Share of a file in long lines above which it is minified or a dump on one line."""


# Roles

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
    ".textile", ".pod", ".rdoc", ".1", ".3", ".5", ".7", ".8", ".1.in",
)  # fmt: skip
_COMPLETION = re.compile(r"completions?/(?:_[\w-]+|[\w.-]+\.(?:ba|fi|z)sh|_?[\w.-]+\.ps1)(?:\.in)?")
"""What completes options in a shell repeats them and what the manual says of them."""
_NOT_DOCUMENT = re.compile(
    r"(?:cmakelists|robots|meson_options|requirements[\w.-]*|constraints[\w.-]*)\.txt"
)
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


def skip_by_name(path: str) -> str:
    """Reason to leave `path` out unread; '' when its content must be looked at."""
    name = path[path.rfind("/") + 1 :].lower()
    if name in LOCK_FILES:
        return "lock file"
    if is_secret_name(name):
        return _SECRET
    if "." in name and name[name.rfind(".") + 1 :] in BINARY_ENDINGS:
        return _BINARY
    if name.endswith((".js.map", ".css.map", ".mjs.map", ".cjs.map", ".ts.map")):
        return "source map"
    return _MINIFIED if _MINIFIED_NAME.search(name) else ""


def classify(path: str, data: bytes) -> Skipped | str:
    """Why the file is left out, else its role (`types.ROLES`)."""
    reason = skip_by_name(path) or _skip_by_content(path, data)
    return Skipped(path, reason) if reason else role_of(path, data)


def _skip_by_content(path: str, data: bytes) -> str:
    if not data.strip():
        return "empty"
    if is_binary(data):
        return _BINARY
    name = path[path.rfind("/") + 1 :].lower()
    language = detect(path)
    if (name == ".npmrc" and b"_authToken" in data) or is_secret_content(
        data, is_source=bool(language and language.grammar)
    ):
        return _SECRET
    return _MINIFIED if is_minified(name, data) else ""


def is_binary(data: bytes) -> bool:
    """Whether `data` is no text: a NUL early on, a known beginning, or mostly controls."""
    head = data[:SNIFFED_BYTES]
    if b"\0" in head or head.startswith(_MAGIC):
        return True
    controls = len(head) - len(head.translate(None, _CONTROL))
    return controls > MAX_CONTROL_SHARE * len(head)


def is_minified(name: str, data: bytes) -> bool:
    """Whether nearly all of a file lies in lines longer than anybody writes."""
    limit = LONG_LINE_WEB if name.endswith(_WEB_CODE) else LONG_LINE
    # A file whose lines are short on average has no large share in long ones.
    if len(data) <= limit or len(data) < (data.count(b"\n") + 1) * limit * 0.2:
        return False
    if name.endswith(_LONG_LINES_NORMAL):
        return False
    long = sum(len(line) for line in data.split(b"\n") if len(line) > limit)
    return long > LONG_SHARE * len(data)


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
    named = "." not in small and _DOCUMENT_FILE.fullmatch(small)
    return bool(
        not _DOCUMENT_FOLDERS.isdisjoint(folders[:2])
        or not _DOCUMENT_FOLDERS_AT_TOP.isdisjoint(folders[:1])
        or _COMPLETION.fullmatch("/".join((*folders[-1:], small)))
        or ((named or small.endswith(_DOCUMENT_ENDINGS)) and not _NOT_DOCUMENT.fullmatch(small))
    )
