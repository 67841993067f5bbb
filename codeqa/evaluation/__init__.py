"""How good the search is: questions with their targets, ranked lists, figures with intervals."""

from codeqa.evaluation.own import COUNT, Own, prepared
from codeqa.evaluation.questions import Question, Target, load_questions, save_questions
from codeqa.evaluation.ranked import (
    Answered,
    Kind,
    Ranked,
    ask_all,
    load_ranked,
    rank_repositories,
    require_drafting,
    save_ranked,
)
from codeqa.evaluation.scores import (
    FIGURES,
    Figure,
    Report,
    compare,
    interval_of,
    score,
    score_question,
)

__all__ = [
    "COUNT",
    "FIGURES",
    "Answered",
    "Figure",
    "Kind",
    "Own",
    "Question",
    "Ranked",
    "Report",
    "Target",
    "ask_all",
    "compare",
    "interval_of",
    "load_questions",
    "load_ranked",
    "prepared",
    "rank_repositories",
    "require_drafting",
    "save_questions",
    "save_ranked",
    "score",
    "score_question",
]
