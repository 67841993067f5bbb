"""A message cut into words, marks and pieces of code."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

LONGEST = 1_200
"""Characters that are looked at of a longer message, two thirds of them from its beginning:
what is wanted stands before or after what was pasted."""

_ENDINGS = (
    "c|cc|cpp|cs|css|csv|cfg|conf|dart|ex|exs|erl|env|go|gradle|h|hpp|hs|html?|ini|ipynb|java|js|"
    "json|jsx|kt|lock|log|lua|md|mjs|php|pl|proto|ps1|py|pyi|r|rb|rs|rst|sass|scala|scss|sh|sql|"
    "svelte|swift|toml|ts|tsx|txt|vue|xml|ya?ml|zig"
)
_FOLDERS = (
    "src|lib|libs|apps?|tests?|docs|pkg|cmd|internal|include|bin|config|scripts|packages|modules|"
    "tools|server|client|web|core|utils|components"
)
_PROPER = re.compile(
    r"GitHub|GitLab|JavaScript|TypeScript|PostgreSQL|OpenAI|CodeQA|iPhone|iPad|MacBook|i?macOS|"
    r"YouTube|LinkedIn|GraphQL|MongoDB|MySQL|NoSQL|SQLite|LaTeX|TeX|ChatGPT|IntelliJ|PyCharm|"
    r"WebAssembly|PyTorch|TensorFlow|VSCode|NeoVim|DevOps|WhatsApp|PowerShell|FreeBSD|OpenBSD|"
    r"McDonald|StackOverflow|DuckDB|LanceDB|DynamoDB|PhD|OCaml|PayPal|CoffeeScript|HyDE|eBay|"
    r"JetBrains|WebStorm|AsciiDoc|[Nn]ode\.js|[Vv]ue\.js|[Nn]ext\.js|[Rr]eact\.js|"
    r"[Aa][Ss][Pp]\.[Nn][Ee][Tt]"
)
"""Names of things in the world that are spelt as identifiers are."""
_ABBREVIATION = re.compile(r"(?i)e\.g|i\.e|p\.s|a\.k|u\.s|z\.b|d\.h|p\.ej|q\.e")

_TOKEN = re.compile(
    rf"""
    (?P<fence>```[^`]*(?:```|$) | `[^`\n]+`)
  | (?P<address>https?://\S+ | [\w.+-]+@[\w-]+\.[\w.]+)
  | (?P<code>
        (?:\.{{0,2}}/)?(?:[\w.-]+/)*[\w-][\w.-]*\.(?:{_ENDINGS})\b(?::\d+)*     # a file
      | (?<![\w.])\.{{0,2}}/[\w.-]+(?:/[\w.-]*)*
      | (?:{_FOLDERS})/[\w./-]+ | [\w.-]+(?:/[\w.-]+){{2,}}/? | [\w-]{{2,}}/(?=[\s?!,;]|$)
      | [A-Za-z_]\w*(?:(?:\.|::|->|\#)[A-Za-z_]\w*)+(?:\(\w*\))?                  # a name of a name
      | [A-Za-z_]\w*\((?:\w*|\.\.\.)\)                                           # a call
      | _*[A-Za-z0-9]+(?:_+[A-Za-z0-9]+)+_* | __?[a-z]\w* | [a-z]\w*_(?!\w)      # in snakes
      | [a-z]+[a-z0-9]*[A-Z][A-Za-z0-9]* | (?:[A-Z][a-z0-9]+){{2,}}[A-Z]? | [A-Z]{{2,}}[a-z][a-z]\w*
      | (?<!\S)--?[a-z][\w-]+ | SIG[A-Z]{{3,}} | 0x[0-9a-fA-F]+ | @[A-Za-z_][\w.]* | \#include\b
    )
  | (?P<word>[^\W\d_]+(?:['’][^\W\d_]+)*(?:\+\+|\#)?)
  | (?P<number>\d[\w.,%+-]*)
  | (?P<smiley>(?<!\w)[:;=]-?[)(DPp|/](?!\w) | <3 | \^\^)
  | (?P<mark>[.!?…]+|[,;:()\n—–¿¡。！？、，；：]|\s-\s)
  | (?P<sign>[^\w\s])
    """,
    re.VERBOSE,
)
_PANIC = re.compile(
    r"Traceback \(most recent|^[ \t]+at \S+|^panic:|^\w*(?:Error|Exception)\b[:\[]|error\[\w+\]|"
    r"^[ \t]*File \"|goroutine \d+|\berror: |segmentation fault|segfault|core dumped|stack ?trace|"
    r"\bexit code \d|\bundefined reference\b|npm ERR|^[ \t]*[\w.$]+\(\S*:\d+\)|"
    r"^[ \t]*(?:def|class|function|public|private|static|const|let|var|import|from|func|fn) \w"
    r".*[({:;]",
    re.MULTILINE,
)
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")

_CONTRACTIONS = {
    "im": "i am", "ive": "i have", "whats": "what is", "wheres": "where is", "whos": "who is",
    "hows": "how is", "thats": "that is", "dont": "do not", "doesnt": "does not",
    "didnt": "did not", "isnt": "is not", "arent": "are not", "wasnt": "was not",
    "cant": "can not", "cannot": "can not", "wont": "will not", "wouldnt": "would not",
    "shouldnt": "should not", "couldnt": "could not", "havent": "have not", "hasnt": "has not",
    "youre": "you are", "youve": "you have", "theyre": "they are", "lets": "let us",
    "theres": "there is", "gonna": "going to", "wanna": "want to", "gimme": "give me",
    "wich": "which", "wher": "where", "teh": "the", "pls": "please", "plz": "please",
    "thier": "their", "u": "you", "ur": "your", "r": "are", "favorite": "favourite",
    "can't": "can not", "won't": "will not", "shan't": "shall not", "let's": "let us",
    "y'all": "you all",
}  # fmt: skip
_TAILS = {"n't": "not", "'m": "am", "'re": "are", "'ve": "have", "'d": "would",
          "'ll": "will"}  # fmt: skip
_IS = frozenset(
    ("it", "that", "this", "what", "who", "where", "how", "why", "when", "there", "here", "he",
     "she", "name", "everything", "everyone", "one")
)  # fmt: skip
"""Words after which `'s` is "is"; after others it is a genitive."""


@dataclass(frozen=True, slots=True)
class Token:
    """`sort` is `word`, `code`, `number`, `mark` or `sign`; a word is in lower case."""

    text: str
    sort: str
    capital: bool = False


def shortened(text: str) -> str:
    """What is looked at of `text`: all of it, or its beginning and end."""
    if len(text) <= LONGEST:
        return text
    tail = LONGEST // 3
    return text[: LONGEST - tail] + "\n" + text[-tail:]


def has_panic(text: str) -> bool:
    """Whether `text` holds what a program prints when it fails, or lines of code."""
    return _PANIC.search(text) is not None


def tokenise(text: str) -> list[Token]:
    """The tokens of `text`, contractions taken apart."""
    found: list[Token] = []
    for match in _TOKEN.finditer(unicodedata.normalize("NFC", text)):
        sort, piece = match.lastgroup or "sign", match.group()
        if sort == "fence" or (sort == "code" and not _is_ordinary(piece)):
            found.append(Token(piece, "code"))
        elif sort in ("word", "code"):
            found += _words(piece)
        elif sort == "smiley" or (sort == "sign" and not piece.isascii()):
            found.append(Token(piece, "sign"))
        elif sort in ("mark", "number"):
            found.append(Token(piece.strip() or "\n", sort))
    return found


def is_unspaced(word: str) -> bool:
    """Whether `word` is of a script that does not part words by blanks."""
    return _UNSPACED.search(word) is not None


def _is_ordinary(piece: str) -> bool:
    """Whether what is spelt as code is an abbreviation or the name of a product."""
    return bool(_PROPER.fullmatch(piece) or _ABBREVIATION.fullmatch(piece.rstrip(".")))


def _words(piece: str) -> list[Token]:
    word = piece.lower().replace("’", "'")
    capital = piece[0].isupper()
    return [Token(part, "word", capital) for part in _expanded(word).split()]


def _expanded(word: str) -> str:
    if word in _CONTRACTIONS:
        return _CONTRACTIONS[word]
    if word.endswith("'s"):
        return f"{word[:-2]} is" if word[:-2] in _IS else word[:-2]
    for tail, meaning in _TAILS.items():
        if word.endswith(tail) and len(word) > len(tail):
            return f"{word[: -len(tail)]} {meaning}"
    return word.replace("'", " ")
