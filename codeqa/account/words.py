"""The words by which people speak of themselves and of how they want to be answered.

English first; of other languages the commonest forms alone. Everything is matched against one
sentence at a time, which `profile` has cut to a bounded length.
"""

from __future__ import annotations

import re


def words(*groups: str) -> str:
    """The alternatives that stand between blanks in `groups`; `_` stands for a blank in one."""
    found = [word.replace("_", r"\s+") for group in groups for word in group.split()]
    return "|".join(sorted(found, key=len, reverse=True))


def rule(pattern: str) -> re.Pattern[str]:
    """A pattern of this part: letters of either case, whole words at its ends."""
    return re.compile(rf"(?<!\w)(?:{pattern})(?!\w)", re.IGNORECASE)


NATURAL = {
    "arabic": "Arabic", "العربية": "Arabic",
    "chinese": "Chinese", "chinesisch": "Chinese", "chinois": "Chinese", "中文": "Chinese",
    "czech": "Czech", "česky": "Czech", "danish": "Danish", "dansk": "Danish",
    "dutch": "Dutch", "nederlands": "Dutch", "niederländisch": "Dutch",
    "english": "English", "englisch": "English", "anglais": "English", "inglés": "English",
    "ingles": "English", "inglês": "English", "inglese": "English", "engels": "English",
    "finnish": "Finnish", "suomeksi": "Finnish",
    "french": "French", "französisch": "French", "français": "French", "francais": "French",
    "francés": "French", "francese": "French", "francês": "French", "frans": "French",
    "german": "German", "deutsch": "German", "allemand": "German", "alemán": "German",
    "aleman": "German", "tedesco": "German", "alemão": "German", "duits": "German",
    "greek": "Greek", "ελληνικά": "Greek", "hebrew": "Hebrew", "hindi": "Hindi",
    "hungarian": "Hungarian", "magyarul": "Hungarian",
    "italian": "Italian", "italienisch": "Italian", "italien": "Italian", "italiano": "Italian",
    "japanese": "Japanese", "japanisch": "Japanese", "japonais": "Japanese", "日本語": "Japanese",
    "korean": "Korean", "koreanisch": "Korean", "한국어": "Korean", "norwegian": "Norwegian",
    "norsk": "Norwegian", "polish": "Polish", "polnisch": "Polish", "polsku": "Polish",
    "portuguese": "Portuguese", "portugiesisch": "Portuguese", "portugais": "Portuguese",
    "português": "Portuguese", "portugues": "Portuguese", "portugués": "Portuguese",
    "romanian": "Romanian", "russian": "Russian", "russisch": "Russian", "russe": "Russian",
    "русском": "Russian", "spanish": "Spanish", "spanisch": "Spanish", "espagnol": "Spanish",
    "español": "Spanish", "espanol": "Spanish", "spagnolo": "Spanish", "espanhol": "Spanish",
    "spaans": "Spanish", "swedish": "Swedish", "svenska": "Swedish", "turkish": "Turkish",
    "türkçe": "Turkish", "ukrainian": "Ukrainian", "українською": "Ukrainian",
    "vietnamese": "Vietnamese",
}  # fmt: skip
"""Languages that people speak, as they are named → in English."""

NATURAL_LANGUAGE = re.compile(
    "|".join(
        word if ord(word[0]) > 0x2E7F else rf"(?<!\w){word}(?!\w)"
        for word in sorted(NATURAL, key=len, reverse=True)
    ),
    re.IGNORECASE,
)

PROGRAMMING = (
    r"(?<!\w)(?:C\+\+|C#|F#|\.NET|Objective-C|(?:"
    + words(
        "Python Java JavaScript TypeScript Golang Rust Kotlin Scala Ruby PHP Perl Swift Haskell",
        "Elixir Erlang Clojure OCaml Lua Julia Dart Zig COBOL Fortran Pascal Delphi Groovy Lisp",
        "SQL Bash React Vue Angular Svelte Django Flask FastAPI Rails Spring Docker Kubernetes",
        "Terraform Git Linux Node Node.js pandas NumPy PyTorch TensorFlow Redis PostgreSQL",
    ).replace(".", r"\.")
    + r")(?!\w))"
)
CODE_LANGUAGE = re.compile(rf"(?i:{PROGRAMMING})|(?<!\w)(?:Go|C|R|D)(?![\w+#'’-])")
"""Languages that programs are written in, and what one has experience with beside them."""

EDITORS = words(
    "vim neovim nvim vi emacs vs_code vscode visual_studio visual_studio_code intellij "
    "intellij_idea pycharm webstorm goland clion rider eclipse netbeans sublime sublime_text atom "
    "nano helix kakoune zed xcode android_studio cursor notepad++ rstudio jupyter"
).replace("++", r"\+\+")
SYSTEMS = words(
    "windows linux macos mac_os a_mac mac ubuntu debian fedora arch arch_linux freebsd nixos wsl"
)

ROLES = words(
    "developer developers engineer programmer student intern tester designer manager architect",
    "analyst admin administrator sysadmin sre scientist researcher teacher professor maintainer",
    "contributor freelancer consultant writer lead owner dev coder hobbyist trainee apprentice",
    "lecturer hacker cto ceo dba mathematician physicist biologist doctor lawyer journalist",
    "entwickler entwicklerin programmierer programmiererin ingenieur ingenieurin studentin",
    "praktikant praktikantin tester testerin informatiker informatikerin azubi lehrer lehrerin",
    "développeur développeuse ingénieur ingénieure étudiant étudiante stagiaire enseignant",
    "enseignante chercheur chercheuse desarrollador desarrolladora programador programadora",
    "ingeniero ingeniera estudiante profesor profesora desenvolvedor desenvolvedora engenheiro",
    "engenheira estudante estagiário estagiária sviluppatore sviluppatrice ingegnere studente",
    "studentessa ontwikkelaar programmeur stagiair",
)

LASTING = rule(
    words(
        "always never ever from_now_on from_here_on in_future in_the_future every_time whenever "
        "by_default henceforth permanently forever going_forward "
        "immer stets künftig kuenftig zukünftig in_zukunft ab_jetzt ab_sofort von_nun_an "
        "toujours désormais dorénavant à_partir_de_maintenant jamais "
        "siempre de_ahora_en_adelante a_partir_de_ahora nunca "
        "sempre d'ora_in_poi de_agora_em_diante a_partir_de_agora altijd voortaan"
    )
)
"""From now on, not for one answer."""

REMEMBER = re.compile(
    r"(?:(?:can|could)\s+you\s+)?(?:please\s+|pls\s+|bitte\s+)?(?:"
    r"re?me?m?ber|note|keep\s+in\s+mind|don'?t\s+forget|for\s+the\s+record|fyi|know|"
    r"make\s+a\s+note|merk(?:e)?\s+dir|denk\s+dran|vergiss\s+nicht|"
    r"retiens|souviens[- ]toi|rappelle[- ]toi|note|recuerda|acuérdate|ten\s+en\s+cuenta|"
    r"lembre(?:-se)?|lembra|ricorda(?:ti)?|onthoud|запомни|记住|请记住"
    r")(?:\s+(?:bitte|please|de|di))?\s*[,:]?\s*(?:(?:that|dass|que|qu'|che|dat|что)\s*)?,?\s*",
    re.IGNORECASE,
)
"""At the beginning of a sentence: what follows is to be kept."""
KEPT_IN_MIND = rule(r"(?:keep|bear|have)\s+(?:that|this|it)\s+in\s+mind|take\s+(?:that|this)\s+into"
                    r"\s+account|remember\s+(?:that|this)")  # fmt: skip

FIRST_PERSON = re.compile(
    r"(?:i|i'm|i've|i'd|im|ive|my|we|our|me|ich|mein\w*|mir|je|j'\S+|mon|ma|mes|yo|mi|mis|me|soy|"
    r"prefiero|eu|meu|minha|prefiro|io|ho|sono|preferisco|ik|mijn|я|мой|меня|我)(?!\w)|我",
    re.IGNORECASE,
)

ANSWERS = rule(
    r"answer\w*|repl(?:y|ies|ying)|respon(?:d|se|ses|ding)|explain\w*|explanations?|outputs?|"
    r"talk|speak|write|antwort\w*|erklär\w*|schreib\w*|sprich|répon\w+|explications?|explique\w*|"
    r"respuestas?|respond\w+|respost\w+|rispost\w+|rispondi\w*|antwoord\w*|отвечай|回答|回复"
)
EXAMPLES = rule(
    r"examples?|snippets?|samples?|beispiele?n?|exemples?|ejemplos?|exemplos?|esemp\w+|"
    r"voorbeeld\w*"
)
PREFER = rule(
    r"prefer|like|love|want|need|i'd\s+like|would\s+like|would\s+rather|bevorzuge|mag|möchte|hätte|"
    r"will|préfère|aime|aimerais|voudrais|prefiero|quiero|gustan?|prefiro|gosto|quero|preferisco|"
    r"vorrei|hou\s+van|wil"
)
OWN_LANGUAGE = rule(
    r"(?:set|change|switch)\s+(?:my|the)\s+(?:\w+\s+){0,2}language\s+to|"
    r"my\s+(?:preferred|favou?rite|main|usual|native)\s+(?:\w+\s+)?language\s+(?:is|now\s+is)|"
    r"(?:use|take)\s+(?=\S+\s+as\s+my\s+(?:\w+\s+)?language)|"
    r"meine\s+(?:lieblings|bevorzugte\s+|mutter)?sprache\s+ist|mi\s+idioma\s+(?:preferido\s+)?es|"
    r"ma\s+langue\s+(?:préférée\s+|maternelle\s+)?est"
)
NOT = rule(r"no|not|don't|dont|do\s+not|never|without|hate|nicht|keine?n?|pas|jamais|sin|sem|non")
SHORT = rule(
    r"short(?:er)?|brief|concise|terse|succinct|compact|to\s+the\s+point|kurz\w*|knapp\w*|"
    r"court(?:e?s)?|brève?s?|bref|concis(?:es?)?|cort[ao]s?|breves?|concis[ao]s?|curt[ao]s?|brevi|"
    r"korte?"
)
LONG = rule(
    r"long(?:er|ues?)?|lengthy|detailed|thorough|in[- ]depth|verbose|elaborate|ausführlich\w*|"
    r"detailliert\w*|lange|détaillée?s?|detallad[ao]s?|larg[ao]s?|detalhad[ao]s?|longas?|"
    r"dettagliat[aei]|lunghe|uitgebreide?"
)
IMPERATIVE = re.compile(
    r"(?:please\s+)?(?:(?:always|never|don'?t|do\s+not)\s+)?(?:show|give|include|use|explain|add|"
    r"answer|reply|respond|write|put|start|begin|end|mention|cite|quote|skip|omit|leave|assume|"
    r"avoid|stop|be|keep|call|treat|address|format|summari[sz]e|number|link|no\s+need\s+to)\s",
    re.IGNORECASE,
)
TO_ME = rule(r"me|i|i'd|my|you|your|yourself")

NOT_TO_BE_KEPT = rule(
    r"(?:don'?t|do\s+not|never|without|not\s+to|rather\s+not|shouldn'?t|should\s+not|must\s+not)\s+"
    r"(?:want\s+you\s+to\s+)?(?:you\s+)?(?:ever\s+)?(?:sav|stor|remember|keep|record|log|memori[sz]|retain|writ)\w*|"
    r"nicht\s+(?:zu\s+)?(?:speichern|merken|behalten)|(?:speicher\w*|merk\w*)\s+(?:\w+\s+){0,3}nicht"
    r"|ne\s+(?:\w+\s+)?(?:sauvegard|enregistr|retien|gard)\w*|no\s+(?:lo\s+|la\s+|me\s+)?"
    r"(?:guard|record|almacen)\w*|não\s+(?:\w+\s+)?(?:guard|salv|lembr)\w*|non\s+(?:\w+\s+)?"
    r"(?:salvar|ricordar|memorizzar)\w*|off\s+the\s+record"
)
"""Whoever says this does not want the rest of the message to be learnt either."""
