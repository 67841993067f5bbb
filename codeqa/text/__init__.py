"""Small readings of text: tokens, the tag, places, the text of a unit."""


def counted(number: int, one: str, many: str = "") -> str:
    """`1 place`, `2 places`; 1,234 with its comma."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
