"""How good the search is: questions with their targets, ranked lists, figures with intervals."""
