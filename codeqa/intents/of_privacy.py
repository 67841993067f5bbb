"""What speaks for `privacy` (S3.07): what this app does with the one who writes."""

from __future__ import annotations

from codeqa.intents.common import Rule, asks, to_you
from codeqa.intents.lexicon import UNSPACED
from codeqa.intents.reading import CODE, Reading
from codeqa.intents.reference import strong_software


def _deletes(m: Reading) -> bool:
    held = ("MY", "ABOUT_ME", "TALK", "DATA")
    if m.has(CODE) or not m.has("DELETE") or (m.has("reset") and not m.has("MY")):
        return False
    if m.opens("DELETE", within=3) and m.near("DELETE", "TALK", 5) and not m.has("CODEBASE"):
        return True
    if m.language in UNSPACED and m.any_near(held, ["DELETE"], 8):
        return True
    if m.any_near(["DELETE"], ["I", "ME"], 6) and not strong_software(m):
        return True
    if m.has("SOFTWARE") and not m.has("MY", "YOU", "ME", "I"):
        return False
    order = m.opens("DELETE", within=4) or m.has("I", "YOU", "ME", "MY", "OUR")
    return order and (m.any_near(["DELETE"], held, 6) or m.any_near(held, ["DELETE"], 8))


def _orders_deletion(m: Reading) -> bool:
    """An order to delete that names something of the speaker's."""
    order = m.opens("DELETE", within=2) or (to_you(m) and m.near("YOU", "DELETE", 3))
    theirs = m.has("MY", "ABOUT_ME", "CONVERSATION") or m.near("DELETE", "TALK", 3)
    return order and theirs and not m.has(CODE, "CODEBASE")


def _holding(m: Reading) -> bool:
    """Keeping, deleting, passing on or watching, and somebody whose words it may be of."""
    if m.has(CODE, "FORM", "TECH") or strong_software(m) or m.near("HOW", "I", 3):
        return False
    doing = m.has("STORE", "DELETE", "SEND", "WATCH", "PASTE", "FORGET")
    party = m.has("MY", "ABOUT_ME", "YOUR", "CONVERSATION", "APP", "CLOUD", "HERE", "OTHERS")
    by_app = m.any_near(["YOU"], ["STORE", "SEND", "WATCH", "DELETE"], 3)
    return doing and (party or by_app) and not (m.has("CODEBASE") and not m.has("MY", "OUR"))


def _forgets(m: Reading) -> bool:
    return m.opens("FORGET", within=3) and m.length > 2 and not m.has("forget it", CODE)


def _stores(m: Reading) -> bool:
    """What is done to the speaker's words, and keeping."""
    if m.has(CODE) or (m.has("WHERE") and m.has("CODEBASE", "OUR")):
        return False
    if m.near("HOW", "AUX", 1) and not m.has("MY", "YOU", "ABOUT_ME", "SUCH"):
        return False  # "how are chats stored": a question about code
    own = ("MY", "ABOUT_ME", "TALK")
    if m.any_near(["YOU"], ["STORE"], 4) and m.any_near(["STORE"], ["DATA", "WATCH"], 5):
        return True
    return m.any_near(own, ["STORE"], 6) or (
        m.any_near(["STORE"], own, 5) and not (m.has("CODEBASE") and not m.has("MY"))
    )


def _you_store(m: Reading) -> bool:
    both = m.any_near(["YOU"], ["STORE"], 4) or (m.language != "en" and m.near("STORE", "YOU", 3))
    if m.has(CODE, "CODEBASE", "FACT", "FORM"):
        return False
    return both and (m.length <= 4 or not strong_software(m))


def _you_store_this(m: Reading) -> bool:
    return _you_store(m) and m.opens("do", "did", "are", "will", "have", "would")


def _own_words(m: Reading) -> bool:
    """A question about the speaker's own words or data, or about the conversation as a thing."""
    if m.has(CODE, "CODEBASE", "FORM") or not asks(m):
        return False
    this = m.any_near(["SUCH"], ["TALK", "answer"], 1) and m.has("STORE", "SEND", "DELETE")
    return (
        this
        or m.any_near(["MY"], ["TALK", "DATA"], 3)
        or m.any_near(["SUCH", "OUR", "these", "all"], ["CONVERSATION"], 2)
        or (m.opens("AUX") and m.near("the", "CONVERSATION", 1) and not strong_software(m))
    )


def _kept_at_all(m: Reading) -> bool:
    """ "What gets logged?", "is anything uploaded?": said of nothing else, it is of the app."""
    if m.has(CODE, "CODEBASE", "OUR", "TECH") or not asks(m):
        return False
    bare = m.opens("WHAT") and m.has("STORE") and m.length <= 4 and not m.has_history
    return (bare and not m.has("PRONOUN", "SUCH")) or m.any_near(
        ["anything", "something", "everything"], ["SEND", "STORE"], 3
    )


def _what_i_paste(m: Reading) -> bool:
    given = ["paste", "type", "write", "share", "send", "upload", "ask", "say", "enter", "tell"]
    return (
        m.any_near(["I"], given, 2)
        and m.has("STORE", "SEND", "PRIVATE")
        and asks(m)
        and not (m.opens("HOW", "WHERE") or m.has(CODE))
    )


def _remembers_this(m: Reading) -> bool:
    return (
        m.near("YOU", "remember", 3)
        and m.any_near(["remember"], ["SUCH", "PRONOUN"], 1)
        and (m.asks or m.opens("AUX"))
    )


def _switches_off(m: Reading) -> bool:
    return m.any_near(["OFF"], ["TALK", "WATCH", "memory", "recording", "logging"], 3) and (
        not m.has(CODE, "CODEBASE", "WHERE")
    )


def _leaves(m: Reading) -> bool:
    places = ["machine", "computer", "laptop", "device", "network", "company", "premises", "pc"]
    return m.any_near(["leave", "leaves", "leaving", "outside", "off"], places, 3) and (
        not m.has(CODE)
    )


def _remembers(m: Reading) -> bool:
    """Asks what is remembered as a whole, not for one fact."""
    if m.has("ABOUT_ME") and m.has("REMEMBER", "STORE", "YOU", "DATA", "have", "WHAT"):
        return True
    return (
        m.near("YOU", "REMEMBER", 3)
        and (m.any_near(["REMEMBER"], ["TALK", "DATA", "earlier", "previous", "past", "last"], 4))
        and not m.has("FACT")
    )


def _not_kept(m: Reading) -> bool:
    keeping = ["STORE", "REMEMBER", "WATCH"]
    if m.has(CODE, "CODEBASE") or (m.asks and not m.has("YOU", "please")):
        return False
    if m.opens("WHY", "WHERE", "WHICH", "WHAT", "HOW") or m.has("always", "in mind"):
        return False
    by_app = m.has("please", "YOU", "MY", "ME", "SUCH", "PRONOUN", "TALK", "DATA")
    stops = m.any_near(["stop", "quit", "avoid"], ["RECORDING"], 2)
    return stops or (m.any_near(["NOT"], keeping, 6) and by_app and not m.near("I", "know", 3))


def _seen_by_others(m: Reading) -> bool:
    if m.has(CODE, "CODEBASE") and not m.has("OUR", "MY"):
        return False
    own = m.has("MY", "ME", "TALK", "OUR", "SUCH", "ABOUT_ME") or m.near("I", "type", 2)
    seen = m.has("SEND", "STORE", "WATCH") and own
    return (
        (seen and m.has("OTHERS") and not strong_software(m))
        or (seen and m.has("WHO") and m.any_near(["SEND"], ["MY", "TALK", "OUR", "ME"], 4))
        or (m.near("YOU", "SEND", 3) and m.has("MY", "OUR", "OTHERS", "TALK"))
        or (m.any_near(["MY", "OUR"], ["SEND"], 4) and not strong_software(m))
    )


def _watched(m: Reading) -> bool:
    about = m.has("YOU", "ME", "I", "MY", "APP") or (m.has("WHO", "SUCH") and m.length <= 4)
    code = m.has(CODE) or (m.has("CODEBASE") and not m.has("APP"))
    return m.has("WATCH") and about and not code


def _worries(m: Reading) -> bool:
    theirs = m.has("MY", "OUR", "YOU") and m.has("SEND", "DATA", "TALK", "SECRET", "STORE", "FACT")
    return m.has("WORRY") and theirs and not m.has(CODE)


def _how_do_you_know(m: Reading) -> bool:
    return m.near("HOW", "know", 3) and m.near("YOU", "know", 2) and m.has("I", "MY", "ABOUT_ME")


def _sent_out(m: Reading) -> bool:
    theirs = m.has("MY", "OUR", "YOU", "I", "ME", "TALK")
    return (
        m.has("CLOUD")
        and (m.has("SEND") or theirs)
        and not m.has(CODE)
        and (theirs or not strong_software(m))
    )


def _private(m: Reading) -> bool:
    theirs = m.has("YOU", "YOUR", "MY", "I", "ME", "TALK", "this")
    return (
        m.has("PRIVATE")
        and not m.has(CODE)
        and not (m.has("CODEBASE") and not m.has("OUR", "MY"))
        and (theirs or not (strong_software(m) or m.has("WHERE")))
    )


def _copy(m: Reading) -> bool:
    wants = m.has("copy", "export", "download", "show", "list", "give", "see", "exporter", "backup")
    return (
        wants
        and ((m.has("MY", "ABOUT_ME") and m.has("DATA", "TALK")) or m.has("ABOUT_ME"))
        and not m.has(CODE)
    )


def _pasted_secret(m: Reading) -> bool:
    if asks(m) and m.has("PASTE") and m.has("HERE"):
        return True
    if m.has("WORRY") and m.any_near(["safe", "secure", "trust", "to"], ["PASTE"], 3):
        return True
    return (
        m.has("SECRET")
        and m.has("PASTE", "DELETE", "TALK")
        and m.has("I", "TALK")
        and (not m.has(CODE))
    )


def _go(m: Reading) -> bool:
    return m.has("WHERE") and m.near("MY", "go", 5) and m.has("TALK", "DATA", "CODEBASE")


RULES = (
    Rule("asks the app to delete what it holds", "privacy", 5, _deletes),
    Rule("orders to delete something of theirs", "privacy", 6, _orders_deletion),
    Rule("keeping or passing on, and whose it may be", "privacy", 3, _holding),
    Rule("asks the app to forget", "privacy", 4, _forgets),
    Rule("asks what is kept of theirs", "privacy", 4, _stores),
    Rule("asks what the app keeps", "privacy", 5, _you_store),
    Rule("asks whether the app keeps this", "privacy", 6, _you_store_this),
    Rule("asks about their own words or data", "privacy", 4, _own_words),
    Rule("asks what is kept at all", "privacy", 6, _kept_at_all),
    Rule("asks about what they paste here", "privacy", 8, _what_i_paste),
    Rule("asks whether the app will remember this", "privacy", 7, _remembers_this),
    Rule("wants it switched off", "privacy", 5, _switches_off),
    Rule("asks what leaves the machine", "privacy", 5, _leaves),
    Rule("asks for all that is known of the speaker", "privacy", 5, _remembers),
    Rule("asks not to keep something", "privacy", 12, _not_kept),
    Rule("asks who else gets to see it", "privacy", 8, _seen_by_others),
    Rule("worries about being watched", "privacy", 5, _watched),
    Rule("worries about what becomes of theirs", "privacy", 6, _worries),
    Rule("asks how the app knows that", "privacy", 9, _how_do_you_know),
    Rule("asks what goes to a model's provider", "privacy", 8, _sent_out),
    Rule("speaks of privacy", "privacy", 3, _private),
    Rule(
        "asks about the app's privacy",
        "privacy",
        3,
        lambda m: _private(m) and m.has("YOU", "YOUR", "MY", "I", "ME", "TALK", "OUR"),
    ),
    Rule("asks for a copy of their data", "privacy", 4, _copy),
    Rule("has pasted a secret", "privacy", 6, _pasted_secret),
    Rule("asks where their data goes", "privacy", 4, _go),
)
