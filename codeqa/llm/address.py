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
    if any(character.isspace() or not character.isprintable() for character in address):
        raise _unusable("it has a space or an invisible character in it")
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise _unusable("it is no valid URL") from None
    if parts.scheme not in DEFAULT_PORTS or not host:
        raise _unusable("it does not begin with http:// or https:// and a host")
    if not HOST.fullmatch(host):
        raise _unusable("its host is no plain host name (xn--… in other alphabets)")
    if parts.username is not None or parts.password is not None:
        raise _unusable("it carries a user name or password")
    if parts.query or parts.fragment:
        raise _unusable("it carries a query or fragment")
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


def _unusable(why: str) -> UsageError:
    return UsageError(
        f"The address of the model cannot be used: {why}.",
        "Give the base address of the API, as in http://127.0.0.1:11434/v1.",
    )
