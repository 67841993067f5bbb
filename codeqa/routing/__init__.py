"""Classifies a message and decides what is done for it."""
