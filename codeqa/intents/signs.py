"""What messages of each intent look like, in kinds of words (`lexicon.toml`) and English words."""

from __future__ import annotations

from codeqa.intents.reading import CODE, Reading

QUESTION = ("WHERE", "WHAT")
ORDERS = ("show", "list", "explain", "describe", "find", "tell", "give", "write", "fix", "add",
          "compare")  # fmt: skip
NOTHING_OF_CODE = {"OTHERS", "SEND", "STORE", "DATA", "TALK", "SECRET"}
"""Kinds of words that are as likely to be of the speaker's own things as of software."""


# What several rules ask of a message


def is_question(m: Reading) -> bool:
    """A question, by its mark or its first word."""
    return m.asks or m.opens(*QUESTION, "AUX")


def wants_something(m: Reading) -> bool:
    """A question or an order."""
    return is_question(m) or m.opens(*ORDERS)


def of_code(m: Reading) -> bool:
    """Speaks of code: by pieces of it, or by naming the code base."""
    return m.has(CODE, "CODEBASE")


def software(m: Reading) -> bool:
    """A word of software names something: in a first message any, later none that may be a word
    of the last answer, and never a fact of the speaker's ("my job")."""
    for place, kinds in enumerate(m.kinds):
        if "SOFTWARE" not in kinds or kinds & NOTHING_OF_CODE:
            continue
        before = set().union(*m.kinds[max(0, place - 2) : place])
        fact = "FACT" in kinds and before & {"MY", "YOU"}
        if not fact and not (m.has_history and "COMMON" in kinds):
            return True
    return False


def tells(m: Reading) -> bool:
    """A statement with the speaker as its subject."""
    if m.asks or m.opens(*QUESTION, "AUX") or m.has(CODE, "CODEBASE", "DOUBT"):
        return False
    return any(m.lead[place] <= 1 for place in m.at.get("I", ()))


def _to_the_app(m: Reading) -> bool:
    """A question with the app as its subject, and not an order in the form of one."""
    order = m.has("can", "could", "would", "will") and m.near("YOU", (*ORDERS, "FORM"), 2)
    return m.near("AUX", "YOU", 1) and m.opens("AUX", *QUESTION, within=2) and not order


def _definite(m: Reading) -> bool:
    """Speaks of the one thing that there is here; "the difference" is none."""
    after = {m.words[place + 1] for place in m.at.get("the", ()) if place + 1 < m.length}
    return bool(after - {"difference", "best", "point", "meaning", "purpose", "idea", "concept"})


def pronoun(m: Reading) -> bool:
    """Points to something that only an earlier turn names."""
    return m.has_history and any(
        _points(m, place) and not _named_before(m, place)
        for kind in ("PRONOUN", "SUCH")
        for place in m.at.get(kind, ())
    )


def _points(m: Reading, place: int) -> bool:
    """Whether a pronoun is one: no part of a phrase, no "that" which begins a clause."""
    if m.kinds[place] & {"CODEBASE", "EVERYDAY", "SOCIAL", "OPINION", "YOU", "LASTING", "PRIVATE"}:
        return False
    if m.words[place] != "that" or not 0 < place < m.length - 1:
        return True
    return not (m.specific(place - 1) or "SOFTWARE" in m.kinds[place - 1])


def _named_before(m: Reading, place: int) -> bool:
    """Whether what a pronoun stands for may be named in the message itself."""
    if any(CODE in kinds for kinds in m.kinds[: place + 2]):
        return True
    named = [before for before in range(place) if m.specific(before)]
    if not named:
        return False
    owned = m.words[place] in ("its", "their")  # "how does the pool keep its workers"
    earlier = m.clause[named[0]] < m.clause[place]
    return owned or earlier or (len(named) > 1 and "and" in m.words[named[1] : place])


# Privacy: what this app does with the words of the one who writes


def deletes(m: Reading) -> bool:
    if of_code(m) or (software(m) and not m.has("MY", "I", "ME", "TALK")):
        return False
    own = ("MY", "ABOUT_ME", "TALK", "DATA")
    order = m.opens("DELETE", within=3) or m.has("I", "YOU", "MY", "ME")
    if m.near("DELETE", "TALK", 2):
        return True
    return (order and m.near("DELETE", (*own, "I", "ME", "SUCH"), 6)) or m.near(own, "DELETE", 8)


def orders_deletion(m: Reading) -> bool:
    """ "Delete my …", "forget that": at once, and nothing that code could be."""
    forget = m.opens("forget", "unremember", within=3)
    theirs = m.has("MY", "ABOUT_ME", "TALK", "all", "everything")
    order = m.opens("DELETE", within=3) and not m.opens(*QUESTION) and theirs
    return (order or forget) and m.length > 1 and not (of_code(m) or software(m))


def kept_of_theirs(m: Reading) -> bool:
    if of_code(m) or (software(m) and not m.has("MY", "YOU")) or (m.has("FACT") and not m.asks):
        return False
    own = ("MY", "ABOUT_ME", "TALK")
    return m.near(own, "STORE", 6) or m.near("STORE", own, 5)


def own_words(m: Reading) -> bool:
    """ "Are my chats stored?", "I want to see my data", "this conversation"."""
    wanted = is_question(m) or m.near("I", ("want", "like"), 2)
    this = m.near("SUCH", "TALK", 1)
    own = m.near("MY", ("TALK", "DATA"), 2) and not m.has_history
    return wanted and (this or own) and not (of_code(m) or m.has("FACT"))


def keeps_at_all(m: Reading) -> bool:
    """ "What gets logged?", "is anything uploaded?": said of nothing else, it is of the app."""
    bare = m.near("WHAT", "STORE", 2) and m.length <= 4 and not m.has_history
    anything = m.near(("this", "anything", "everything"), ("STORE", "SEND"), 2)
    return is_question(m) and (bare or anything) and not (of_code(m) or software(m))


def not_kept(m: Reading) -> bool:
    if m.has(CODE, "CODEBASE", "mind") or m.opens(*QUESTION) or m.near("I", "know", 3):
        return False
    if m.asks and not m.has("YOU", "please"):
        return False
    if m.near("NOT", "SEND", 2) and m.has("OTHERS"):
        return True
    return m.near("NOT", ("STORE", "REMEMBER", "WATCH"), 6) or m.near("stop", ("STORE", "WATCH"), 1)


def seen_by_others(m: Reading) -> bool:
    theirs = m.has("MY", "ME", "TALK", "OUR", "SUCH", "YOU") or (m.has("it") and not m.has_history)
    seen = m.has("SEND", "STORE", "WATCH") and m.has("OTHERS", "who")
    return theirs and seen and not (software(m) or m.has(CODE))


def sent(m: Reading) -> bool:
    by_you = m.near("YOU", "SEND", 2) and m.has("MY", "OUR", "TALK", "OTHERS")
    own = m.near(("MY", "our"), "SEND", 4) and not software(m)
    return (own or by_you) and not m.has(CODE)


def pasted_secret(m: Reading) -> bool:
    given = m.has("SECRET") and m.has("paste", "pasted", "DELETE")
    return given and m.has("I", "TALK", "here") and not m.has(CODE)


# Profile: facts of the speaker, and wishes that last


def who_they_are(m: Reading) -> bool:
    named = any(place + 1 in m.capitals for place in m.at.get("am", ()))
    return tells(m) and (
        named or m.near("I", "ROLE", 5) or m.near("am", ("a", "an", "the", "from", "in", "on"), 2)
    )


def habit(m: Reading) -> bool:
    """ "I work", "I like", but not "I would like to know where …"."""
    wish = m.near("would", ("like", "love", "know"), 1) or m.near("know", QUESTION, 2)
    return tells(m) and m.near("I", "HABIT", 3) and not wish


def of_themselves(m: Reading) -> bool:
    """ "I …" or "my …", and nothing of the moment ("I need", "I get this error")."""
    own = m.opens("MY") and not m.asks and not m.has("TALK", "DATA", "DELETE")
    return (own or tells(m)) and not software(m) and not m.near("I", "MOMENT", 3)


def lasting_wish(m: Reading) -> bool:
    of_answers = m.has("ANSWER", "I", "ME", "MY") or m.begins("LASTING")
    wished = m.near("AUX", "YOU", 1) or not m.asks
    return m.has("LASTING") and of_answers and wished and not m.opens(*QUESTION)


def always(m: Reading) -> bool:
    order = m.opens("always", "never", within=2) or m.near(("always", "never"), "ANSWER", 1)
    return order and m.has("ANSWER", "ME") and not m.asks


def how_to_answer(m: Reading) -> bool:
    """ "Don't call me buddy", "stop apologising", and in a first message "answer briefly"."""
    if is_question(m) and not m.near("NOT", "ANSWER", 2):
        return False
    if m.asks or software(m) or m.has("STORE"):
        return False
    verbs = ("answer", "reply", "respond", "talk", "speak", "address", "be")
    stops = any(
        m.lead[place] == 0 and "".join(m.words[place + 1 : place + 2]).endswith("ing")
        for place in m.at.get("stop", ())
    )
    not_to_me = m.near("NOT", "ANSWER", 2) and m.has("ME")
    return stops or not_to_me or (not m.has_history and m.opens(*verbs))


def asks_own_fact(m: Reading) -> bool:
    asked = m.near(("who", "where", "what", "how"), "am", 2)
    if m.near("am", "i", 1) and (asked or (m.opens("am") and m.near("i", "ROLE", 3))):
        return True
    if m.near("YOU", "call", 1) and m.near("call", "me", 1):
        return m.asks
    if m.near("did", "i", 1) and m.near("i", "tell", 1) and m.has("FACT"):
        return True
    doing = m.near("do", "I", 2) and m.has("HABIT") and m.length <= 8
    return m.opens(*QUESTION, within=2) and (doing or m.near("FACT", "I", 4))


# General: what no look at the code would answer otherwise


def small_talk(m: Reading) -> bool:
    if m.length == 1 and m.has("test", "testing", "ping", "help"):
        return True
    said = m.has("SOCIAL", "THANKS") or (m.has("PRAISE") and m.length <= 2)
    said = said and m.only("SOCIAL", "THANKS", "PRAISE", "COMMON")
    return said and not (m.has_history and m.asks)


def thanks(m: Reading) -> bool:
    asks = m.asks or m.opens(*QUESTION) or m.near("AUX", "YOU", 1)
    more = m.has("NAME_IS", "LASTING", "am") or (m.has("FORM") and not m.ends("THANKS"))
    return m.has("THANKS") and m.length <= 8 and not (asks or more)


def remark(m: Reading) -> bool:
    more = m.has(
        "FORM", "DOUBT", "NAME_IS", "MY", "ME", "am", "SOFTWARE", "STORE", "DELETE", *ORDERS
    )
    goes_on = any(place for place in m.at.get("OPENING", ()))
    begins = m.begins("SOCIAL", "THANKS", "PRAISE", "YOU")
    return begins and m.length <= 8 and not (more or goes_on or is_question(m))


def praise(m: Reading) -> bool:
    """ "That was quick"."""
    of_this = m.has("SUCH", "it", "YOU") and not m.has("NOT", "DOUBT")
    return m.ends("PRAISE") and of_this and m.length <= 6 and not is_question(m)


def about_the_app(m: Reading) -> bool:
    who = m.near(("who", "what", "how", "que", "qué", "qui", "was", "bist", "kannst"), "YOU", 2)
    held = m.has("STORE", "REMEMBER", "WATCH", "DELETE", "TALK", "PRONOUN", "SUCH", "mean")
    shown = m.has("SEND") and m.has("MY", "OUR", "OTHERS")
    return (who or _to_the_app(m)) and not (held or shown or software(m))


def opinion(m: Reading) -> bool:
    own = m.has("MY") or tells(m)
    return m.has("OPINION") and not (own or software(m))


def concept(m: Reading) -> bool:
    """ "What is a monad", "how does a hash table work": the same everywhere."""
    wanted = is_question(m) or m.opens("explain", "describe", "define", "difference")
    if not wanted or m.has("OUR", "MY", "here", "PRONOUN", "SUCH"):
        return False
    if m.near("what", "mean", 4) and not m.has_history and not _definite(m):
        return True
    if m.near("who", ("is", "was"), 1) and m.capitals - {0}:
        return True
    if m.has("LORE") and not (m.has_history and not m.names):
        return not (_definite(m) and software(m))
    measured = m.opens("how") and not m.near("how", ("AUX", "to"), 1)  # "how long does a job wait?"
    if _definite(m) or m.has("I") or measured:
        return False
    bare = m.near("what", ("is", "are"), 1) and m.length <= 4
    if (bare or m.opens("explain")) and not (m.has_history or software(m)):
        return True
    done = m.near("how", ("is", "are"), 1) and software(m)  # "how is an order shipped?"
    indefinite = m.near(("is", "are", "between", "does", "explain"), ("a", "an"), 2) and not done
    return m.opens("what", "how", "explain", "describe") and (indefinite or m.has("TECH"))


def technology(m: Reading) -> bool:
    """Asks about a technology, and not about one of its uses here."""
    if not m.has("TECH") or not (is_question(m) or m.has("or")) or tells(m):
        return False
    here = m.has("OUR", "MY", "here", "PRONOUN", "where", "which")
    how_to = m.near("how", ("I", "to", "YOU"), 2)
    return not (here or (_definite(m) and (software(m) or not how_to)))


def everyday(m: Reading) -> bool:
    """Not "where is a payment booked": where, which and how are asked of what software does."""
    of_software = m.opens("WHERE", "how", within=2) and software(m)
    told = tells(m) and not m.near("am", "EVERYDAY", 1)
    return m.has("EVERYDAY") and not (of_software or told)


def about_the_talk(m: Reading) -> bool:
    """ "Can I ask you something?", "let's talk about something else"."""
    talk = ("talk", "chat", "speak", "ask", "change")
    return not m.has("STORE") and (
        m.near(talk, ("about", "something", "question", "subject", "topic"), 3)
        or m.near("something", "about", 1)
        or m.near("have", "question", 2)
        or (m.near(("can", "may"), "i", 1) and m.near("i", "ask", 1))
    )


# Knowledge base: questions and tasks that the code helps with


def beside_a_remark(m: Reading) -> bool:
    """A question about code in another clause than what is said about the speaker."""
    if not m.has("I", "MY", "SOCIAL") or m.near("I", ("paste", "pasted"), 1):
        return False
    later = any(
        m.lead[place] <= 1 and m.clause[place] for kind in QUESTION for place in m.at.get(kind, ())
    )
    asked = later or m.near(("know", "explain", "tell", "wonder", "show"), QUESTION, 2)
    return asked and (software(m) or of_code(m))


def software_location(m: Reading) -> bool:
    """ "Where is …", "which … use", "who calls …", of software."""
    named = of_code(m) or any(
        "SOFTWARE" in kinds and not kinds & {"MY", "TALK"} for kinds in m.kinds
    )
    return m.opens("WHERE", within=2) and named and not (pronoun(m) or m.has("MY", "YOU", "TECH"))


def complete_question(m: Reading) -> bool:
    wanted = is_question(m) or (m.opens(*ORDERS) and not m.has("ME"))
    other = m.has("MY", "ABOUT_ME", "LORE", "EVERYDAY", "TECH", "OPINION")
    return m.names >= 2 and wanted and not (other or pronoun(m) or _to_the_app(m))


# Continuation: what only an earlier turn makes understood


def says_nothing(m: Reading) -> bool:
    said = bool(m.words) and not (m.names or tells(m) or m.has("EVERYDAY"))
    return m.has_history and said
