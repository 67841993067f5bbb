"""How good the search is: questions with their targets, ranked lists, figures with intervals."""

from codeqa.evaluation.questions import Question, Target, load_questions
from codeqa.evaluation.ranked import Kind, Ranked, load_ranked, rank_questions, save_ranked
from codeqa.evaluation.scores import (
    FIGURES,
    Figure,
    Report,
    compare,
    score,
    score_question,
)

__all__ = [
    "FIGURES",
    "Figure",
    "Kind",
    "Question",
    "Ranked",
    "Report",
    "Target",
    "compare",
    "load_questions",
    "load_ranked",
    "rank_questions",
    "save_ranked",
    "score",
    "score_question",
]
