"""Addresses and hosts: one spelling of an address, which of them is this machine alone, and what a
request to another one may carry."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import MutableMapping
from urllib.parse import urlsplit

from codeqa.errors import UsageError

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
DEFAULT_PORTS = {"http": 80, "https": 443}
NEEDED_HEADERS = {"accept", "connection", "content-length", "content-type", "host"}

_HOST = re.compile(r"[a-z0-9_.-]+|[0-9a-f:.]+")
"""A name or an address; names in other letters than these look like what they are not."""
_WHOLE_PATH = "/chat/completions"
"""What people paste along with the address; the client adds it itself."""


def is_loopback(host: str) -> bool:
    """Whether `host`, a name or an address, is this machine alone."""
    address = ip_address(host)
    return host.lower() in LOOPBACK_NAMES or bool(address and address.is_loopback)


def ip_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that `host` is, of one kind where it is written as the other; None for a name."""
    try:
        address = ipaddress.ip_address(host.strip("[]").split("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def leads_here(address: str) -> bool:
    """Whether `address` leads to this machine and nowhere else."""
    host = urlsplit(address).hostname or ""
    return is_loopback(host) or host.endswith(".localhost")


def location(address: str) -> str:
    """Scheme, host and port of a normal address: what a key is given for."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}"


def normal_address(text: str, default_path: str = "") -> str:
    """`text` as a base address without a final slash; `default_path` when it has no path.

    Raises UsageError for what is no http(s) URL, and for one that carries a password, a query
    or a fragment: those would be shown wherever the address is.
    """
    address = text.strip()
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
        plain = address.isprintable() and " " not in address and _HOST.fullmatch(host)
        more = parts.username is not None or parts.query or parts.fragment
        if parts.scheme not in DEFAULT_PORTS or not plain or more:
            raise ValueError
    except ValueError:
        raise UsageError(
            "The address of the model is no plain http:// or https:// URL, or carries a user name, "
            "a password, a query or a fragment.",
            "Give the base address of the API, as in http://127.0.0.1:11434/v1.",
        ) from None
    path = parts.path.rstrip("/").removesuffix(_WHOLE_PATH).rstrip("/") or default_path
    shown = f"[{host}]" if ":" in host else host
    place = f"{shown}:{port}" if port is not None and port != DEFAULT_PORTS[parts.scheme] else shown
    return f"{parts.scheme}://{place}{path}"


def keep_needed_headers(headers: MutableMapping[str, str], key: str) -> None:
    """Take out of a request's `headers` what the OpenAI SDK adds of its own: the operating system,
    and what OPENAI_ORG_ID, OPENAI_PROJECT_ID and OPENAI_CUSTOM_HEADERS hold, which another
    provider is not to know. `key` is sent where there is one."""
    for name in set(headers) - NEEDED_HEADERS:
        del headers[name]
    headers["user-agent"] = "codeqa"
    if key:
        headers["authorization"] = f"Bearer {key}"
