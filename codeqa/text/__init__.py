"""Small readings of text: tokens, the tag, places, the text of a unit."""
