"""Addresses of APIs: checked, in one spelling, and compared by where they lead."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from codeqa.errors import UsageError
from codeqa.hosts import is_loopback

DEFAULT_PORTS = {"http": 80, "https": 443}
HOST = re.compile(r"[a-z0-9_.-]+|[0-9a-f:.]+")
"""A name or an address; names in other letters than these look like what they are not."""
WHOLE_PATH = "/chat/completions"
"""What people paste along with the address; the client adds it itself."""


def normal_address(text: str, default_path: str = "") -> str:
    """`text` as a base address without a final slash; `default_path` when it has no path.

    Raises UsageError for what is no http(s) URL, and for one that carries a password, a query
    or a fragment: those would be shown wherever the address is.
    """
    address = text.strip()
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
        plain = address.isprintable() and " " not in address and HOST.fullmatch(host)
        more = parts.username is not None or parts.query or parts.fragment
        if parts.scheme not in DEFAULT_PORTS or not plain or more:
            raise ValueError
    except ValueError:
        raise UsageError(
            "The address of the model is no plain http:// or https:// URL, or carries a user name, "
            "a password, a query or a fragment.",
            "Give the base address of the API, as in http://127.0.0.1:11434/v1.",
        ) from None
    path = parts.path.rstrip("/").removesuffix(WHOLE_PATH).rstrip("/") or default_path
    shown = f"[{host}]" if ":" in host else host
    place = f"{shown}:{port}" if port is not None and port != DEFAULT_PORTS[parts.scheme] else shown
    return f"{parts.scheme}://{place}{path}"


def location(address: str) -> str:
    """Scheme, host and port of a normal address: what a key is given for."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}"


def leads_here(address: str) -> bool:
    """Whether `address` leads to this machine and nowhere else."""
    host = urlsplit(address).hostname or ""
    return is_loopback(host) or host.endswith(".localhost")
