"""Addresses and hosts: their normal form, which are this machine, and what is sent to others."""

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
"""A name or an address. Names in other letters may look like another host."""
_WHOLE_PATH = re.compile(r"/(?:chat/)?(?:completions|responses)$")
"""Often pasted with the address; the client adds its own."""


def is_loopback(host: str) -> bool:
    """Return whether the name or address `host` is this machine."""
    address = ip_address(host)
    return host.lower() in LOOPBACK_NAMES or bool(address and address.is_loopback)


def ip_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Parse an address, IPv4 also where it is written as IPv6; None for a name."""
    try:
        address = ipaddress.ip_address(host.strip("[]").split("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def leads_here(address: str) -> bool:
    """Return whether the URL `address` leads to this machine."""
    host = urlsplit(address).hostname or ""
    return is_loopback(host) or host.endswith(".localhost")


def location(address: str) -> str:
    """Return scheme, host and port of a normal address, to which its key is bound."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}"


def normal_address(text: str, default_path: str = "") -> str:
    """Return `text` as a base address without a final slash; `default_path` when it has no path.

    Raises UsageError for anything but an http(s) URL, and for one with a password, a query or a
    fragment, which would be shown wherever the address is.
    """
    address = text.strip()
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
        is_plain = address.isprintable() and " " not in address and _HOST.fullmatch(host)
        has_more = parts.username is not None or parts.query or parts.fragment
        if parts.scheme not in DEFAULT_PORTS or not is_plain or has_more:
            raise ValueError
    except ValueError:
        raise UsageError(
            "The address of the model is no plain http:// or https:// URL, or has a user name, a "
            "password, a query or a fragment.",
            "Give the base address of the API, as in http://127.0.0.1:11434/v1.",
        ) from None
    path = _WHOLE_PATH.sub("", parts.path.rstrip("/")).rstrip("/") or default_path
    if ":" in host:
        host = f"[{host}]"
    if port not in (None, DEFAULT_PORTS[parts.scheme]):
        host = f"{host}:{port}"
    return f"{parts.scheme}://{host}{path}"


def keep_needed_headers(headers: MutableMapping[str, str], key: str) -> None:
    """Remove what the OpenAI SDK adds, such as OPENAI_ORG_ID and the system, and set the `key`."""
    for name in set(headers) - NEEDED_HEADERS:
        del headers[name]
    headers["user-agent"] = "codeqa"
    if key:
        headers["authorization"] = f"Bearer {key}"
