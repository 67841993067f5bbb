"""What code means: which definition a place means, what uses it and what it uses."""

from codeqa.code.usages import Usages, UsageSite, usages

__all__ = ["UsageSite", "Usages", "usages"]
