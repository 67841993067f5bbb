"""What is known and stored of a user: facts that they told, what is stored, and its deletion."""

from codeqa.account.deletion import SCOPES, DeletionResult, Privacy
from codeqa.account.inventory import MASKED, DataInventory, Mentioned, Receiver, StoredData
from codeqa.account.profile import (
    asked_fact,
    detect_facts,
    facts_to_forget,
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
    confirmed_scope,
    read_personal,
    wished_scope,
)
from codeqa.account.words import NOT_TO_BE_KEPT

__all__ = [
    "CONFIRMATIONS",
    "MASKED",
    "NOT_TO_BE_KEPT",
    "SCOPES",
    "DataInventory",
    "DeletionResult",
    "Mentioned",
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
