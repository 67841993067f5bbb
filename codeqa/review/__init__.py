"""Reviews of issues: what an issue takes, found out by a model that searches the code; without a
model the files, tests and people that it is likely to concern.
"""
