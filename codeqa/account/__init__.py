"""What is known and stored of a user: facts that they told, what is stored, and its deletion."""

from codeqa.account.deletion import DeletionResult, Privacy
from codeqa.account.facts import is_preference, kind_of, matching, preferences, profile_text
from codeqa.account.inventory import DataInventory, StoredData
from codeqa.account.report import deletion_question, deletion_report, privacy_report
from codeqa.account.requests import PersonalReading, read_personal

__all__ = [
    "DataInventory",
    "DeletionResult",
    "PersonalReading",
    "Privacy",
    "StoredData",
    "deletion_question",
    "deletion_report",
    "is_preference",
    "kind_of",
    "matching",
    "preferences",
    "privacy_report",
    "profile_text",
    "read_personal",
]
