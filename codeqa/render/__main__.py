"""Prints the style sheet of the syntax colours: `python -m codeqa.render`."""

from codeqa.render.code import stylesheet

if __name__ == "__main__":
    print(stylesheet(), end="")
