"""Answers without a language model: what the code itself says, cited, most relevant first.

They are the lines that matter of the best definitions, further places in a line each and what is
missing; or what a question of its own kind asks for.
"""

from codeqa.quoted.answer import quoted_answer
from codeqa.quoted.evidence import QuotedEvidence, gather_evidence

__all__ = ["QuotedEvidence", "gather_evidence", "quoted_answer"]
