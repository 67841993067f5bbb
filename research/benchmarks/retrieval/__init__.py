"""How good the search is: questions about pinned repositories, and the trees they are about."""
