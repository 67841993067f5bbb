"""What is known and stored of a user: facts that they told, what is stored, and its deletion."""

from codeqa.account.deletion import SCOPES, DeletionResult, Privacy
from codeqa.account.facts import detect_facts
from codeqa.account.inventory import DataInventory, Receiver, StoredData
from codeqa.account.profile import (
    is_preference,
    kind_of,
    matching,
    preferences,
    profile_text,
)
from codeqa.account.report import deletion_question, deletion_report, privacy_report
from codeqa.account.requests import (
    CONFIRMATIONS,
    PersonalReading,
    asked_fact,
    confirmed_scope,
    facts_to_forget,
    read_personal,
    wished_scope,
)

__all__ = [
    "CONFIRMATIONS",
    "SCOPES",
    "DataInventory",
    "DeletionResult",
    "PersonalReading",
    "Privacy",
    "Receiver",
    "StoredData",
    "asked_fact",
    "confirmed_scope",
    "deletion_question",
    "deletion_report",
    "detect_facts",
    "facts_to_forget",
    "is_preference",
    "kind_of",
    "matching",
    "preferences",
    "privacy_report",
    "profile_text",
    "read_personal",
    "wished_scope",
]
