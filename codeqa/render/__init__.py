"""Text as HTML."""
