"""Answers to questions about real repositories, judged by rules."""
