"""What must not be indexed: files that are secrets, and secret-looking strings in others.

A file whose name says that it holds a secret, or that consists of one, is left out. In
every other file the secret-looking strings alone are replaced by as many asterisks, so that
lines and columns stay true. Only forms that are hardly ever anything else are masked:
issuers' own prefixes with the length they use, private key blocks, signed tokens.
"""

from __future__ import annotations

import re
from fnmatch import translate

from codeqa.text.tokens import word_set

_EXACT_NAMES = word_set(
    ".netrc _netrc .pgpass .pypirc .git-credentials .dockercfg .htpasswd .s3cfg .boto "
    ".vault-token .vault_pass .vault_pass.txt .envrc id_rsa id_dsa id_ecdsa id_ed25519 "
    "id_ecdsa_sk id_ed25519_sk credentials credentials.json credentials.xml credentials.ini "
    "kubeconfig master.key secring.gpg wallet.dat terraform.tfstate terraform.tfstate.backup "
    "gradle-local.properties"
)
_NAME_GLOBS = word_set(
    ".env .env.* *.env *.pem *.key *.p12 *.pfx *.jks *.keystore *.kdbx *.kdb *.ppk *.ovpn "
    "*.tfstate *.tfstate.backup secrets.yml secrets.yaml secrets.json secrets.toml secrets.ini "
    "secret.yml secret.yaml secret.json *.secrets.yml *.secrets.yaml service-account*.json "
    "service_account*.json serviceaccount*.json client_secret*.json *-credentials.json "
    "*_credentials.json *.agekey *.gpg-key *.secret-key"
)
_SECRET_NAME = re.compile("|".join(translate(glob) for glob in _NAME_GLOBS))
_TEMPLATE_NAME = re.compile(
    r"(?:^|[._-])(?:example|sample|template|tmpl|tpl|dist|defaults?|schema|erb|j2)(?:[._-]|$)"
)
_TEMPLATE_ENDINGS = (".md", ".rst", ".py", ".ts", ".js", ".go", ".rb", ".java", ".sh", ".pub")


def is_secret_name(name: str) -> bool:
    """Whether a file of this name (last component) is left out unread."""
    lowered = name.lower()
    if lowered in _EXACT_NAMES:
        return True
    if not _SECRET_NAME.match(lowered):
        return False
    return not (_TEMPLATE_NAME.search(lowered) or lowered.endswith(_TEMPLATE_ENDINGS))


_BETWEEN = r"(?:\\[nrt]|[\s\\\"',|#*+]){0,80}"
"""What stands between the lines of a key, also in string literals and comments."""

_APART = "(?<![A-Za-z0-9_-])"
"""Here a word begins: `task-…` is no `sk-…`."""

_RUN_FORMS = {
    "AKIA ASIA": r"[A-Z0-9]{16}(?![A-Za-z0-9])",
    "ghp_ gho_ ghu_ ghs_ ghr_": r"[A-Za-z0-9]{36,255}",
    "github_pat_": r"[A-Za-z0-9_]{40,255}",
    "glpat-": r"[A-Za-z0-9_-]{20,64}",
    "xox": r"[abeoprs]-(?:[A-Za-z0-9]+-)?[0-9]{6,}[A-Za-z0-9-]{10,250}",
    "xapp-": r"[0-9]-[A-Z0-9]+-[0-9]+-[a-z0-9]{20,}",
    "AIza": r"[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])",
    "sk_live_ rk_live_": r"[A-Za-z0-9]{16,250}",
    "sk-": r"(?:proj-|ant-|or-|svcacct-|admin-)?(?=[A-Za-z_-]*[0-9])"
    r"(?=[a-z0-9_-]*[A-Z]|[0-9a-f]{32})[A-Za-z0-9_-]{32,250}",
    "npm_": r"[A-Za-z0-9]{36}(?![A-Za-z0-9])",
    "pypi-AgE": r"[A-Za-z0-9_-]{50,}",
    "hf_": r"[A-Za-z]{34}(?![A-Za-z0-9])",
    "SG.": r"[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])",
    "dop_v1_": r"[a-f0-9]{64}",
    "AGE-SECRET-KEY-1": r"[A-Z0-9]{58}",
    "eyJ": r"[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{16,}",
}
"""Tokens that are a long word: how they begin (marks), and what follows."""

_LONG_FORMS = {
    "-----BEGIN ": r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:[\s\\nr\"']{1,20}(?:Proc-Type|DEK-Info|Comment|Version):[^\r\n\\]{0,100})*"
    rf"(?P<secret>(?:{_BETWEEN}+[A-Za-z0-9+/=]{{24,}}+){{1,1000}}"
    rf"(?:{_BETWEEN}+[A-Za-z0-9+/=]{{1,24}}(?={_BETWEEN}-----END))?)",
    **{
        name: name + r"[\"']?\s{0,4}[=:]\s{0,4}[\"']?(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+])"
        for name in ("ws_secret_access_key", "WS_SECRET_ACCESS_KEY")
    },
    "hooks.slack.com/services/": _APART
    + r"hooks\.slack\.com/services/(?P<secret>T[A-Z0-9]{6,}/B[A-Z0-9]{6,}/[A-Za-z0-9]{20,})",
    "_authToken=": _APART + r"_authToken=(?P<secret>[A-Za-z0-9_.=/+-]{20,})",
}
"""Other secrets by a mark that is long and therefore found fast; the group `secret` is masked."""

_FORMS = [(mark.encode(), re.compile(form.encode())) for mark, form in _LONG_FORMS.items()] + [
    (mark.encode(), re.compile((_APART + re.escape(mark) + rest).encode()))
    for marks, rest in _RUN_FORMS.items()
    for mark in marks.split()
]

_RUN = 20
"""Bytes of an uninterrupted word; all tokens have one at least as long, little else has."""
_RUN_TABLE = bytes(
    ord("x") if chr(code).isascii() and (chr(code).isalnum() or chr(code) in "_-") else ord(" ")
    for code in range(256)
)
_LONG_MARKS = [mark.encode() for mark in _LONG_FORMS]
_RUN_MARKS = tuple(" ".join(_RUN_FORMS).replace("SG.", "").encode().split())
"""What a long word begins with; `SG.` stands before one, because a dot ends a word."""
_NOT_BREAK = re.compile(rb"[^\r\n]")


def mask_secrets(text: str) -> str:
    """`text` with secret-looking strings as asterisks of equal length."""
    data, count = mask_secret_bytes(text.encode("utf-8", "surrogatepass"))
    return data.decode("utf-8", "surrogatepass") if count else text


def mask_secret_bytes(data: bytes) -> tuple[bytes, int]:
    """`mask_secrets` for the bytes of a file, and how many secrets were masked."""
    if not _may_hold_secrets(data):
        return data, 0
    masked, count = bytearray(data), 0
    for mark, pattern in _FORMS:
        at = data.find(mark)
        while at >= 0:
            if match := pattern.match(data, at):
                first, last = match.span(match.lastgroup or 0)
                masked[first:last] = _NOT_BREAK.sub(b"*", data[first:last])
                count += 1
            at = data.find(mark, match.end() if match else at + len(mark))
    return bytes(masked), count


def _may_hold_secrets(data: bytes) -> bool:
    """A quick look: searching for two dozen short marks in every file takes 3 % of the parsing.

    Every token is a long word, so only the long words are searched for marks.
    """
    if any(mark in data for mark in _LONG_MARKS):
        return True
    shape = data.translate(_RUN_TABLE)
    run = b"x" * _RUN
    at = shape.find(run)
    while at >= 0:
        end = shape.find(b" ", at)
        if end < 0:
            end = len(data)
        if data.startswith(_RUN_MARKS, at) or data.startswith(b"SG.", max(0, at - 3)):
            return True
        at = shape.find(run, end)
    return False


_ARMOUR = re.compile(rb"-----(?:BEGIN|END) [A-Z0-9 ]{1,60}-----")
_SMALL_FILE = 16_384
"""Bytes; a file that consists of secrets is smaller than this."""


def is_secret_content(data: bytes, is_source: bool = False) -> bool:
    """Whether a file consists of a secret: a key file, or mostly masked text.

    Source code that is mostly masked is still source code: it is indexed, masked.
    """
    if len(data) > _SMALL_FILE:
        return False
    stripped = data.strip()
    armours = _ARMOUR.findall(stripped)
    if armours and any(b"PRIVATE KEY" in armour for armour in armours):
        if stripped.startswith(b"-----BEGIN") and stripped.endswith(b"-----"):
            return True
        if b'"private_key"' in stripped and b'"client_email"' in stripped:
            return True  # a service account's key file
    if is_source:
        return False
    masked, count = mask_secret_bytes(stripped)
    return bool(count) and 2 * (masked.count(b"*") - stripped.count(b"*")) > len(stripped)
