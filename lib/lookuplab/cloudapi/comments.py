"""Developer-style comments from an SDK's own description, by deterministic rewriting.

The paper asks Claude 3 Sonnet for three concise comments an API (Appendix A.2, step 7). Without that model the same
step is a rewriting: take the sentence that says what the API does, turn it into an imperative, and reword its verb,
its determiners and its stock phrases. The same rewriting, with other choices, words the mini models' training corpus.
"""

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass

from lookuplab.cloudapi.prose import sentences

Wordings = tuple[str, ...]

# Verb -> what a developer may write instead. The first entry is the plain imperative.
VERBS: dict[str, Wordings] = {
    "get": ("get", "fetch", "retrieve", "look up", "read", "obtain"),
    "retrieve": ("retrieve", "get", "fetch", "look up", "obtain"),
    "return": ("return", "get", "fetch", "retrieve", "look up"),
    "describe": ("describe", "show", "get details of", "look up", "inspect"),
    "display": ("display", "show", "get", "fetch"),
    "provide": ("provide", "get", "show", "fetch"),
    "list": ("list", "enumerate", "show", "get", "collect"),
    "create": ("create", "make", "set up", "add", "provision"),
    "delete": ("delete", "remove", "drop", "get rid of", "erase"),
    "remove": ("remove", "delete", "take away", "drop", "clear"),
    "update": ("update", "modify", "change", "edit", "adjust"),
    "modify": ("modify", "change", "update", "edit", "alter"),
    "change": ("change", "modify", "update", "edit"),
    "put": ("put", "store", "write", "set", "place"),
    "add": ("add", "attach", "append", "include"),
    "set": ("set", "configure", "define", "assign", "specify"),
    "start": ("start", "begin", "launch", "kick off", "trigger"),
    "begin": ("begin", "start", "launch", "kick off"),
    "run": ("run", "execute", "launch", "perform"),
    "stop": ("stop", "halt", "end", "shut down"),
    "cancel": ("cancel", "abort", "call off", "stop"),
    "associate": ("associate", "link", "connect", "tie"),
    "disassociate": ("disassociate", "unlink", "disconnect", "separate"),
    "attach": ("attach", "connect", "add", "link"),
    "detach": ("detach", "disconnect", "unlink", "remove"),
    "enable": ("enable", "turn on", "activate", "switch on"),
    "disable": ("disable", "turn off", "deactivate", "switch off"),
    "register": ("register", "enroll", "sign up", "record"),
    "deregister": ("deregister", "unregister", "remove", "withdraw"),
    "send": ("send", "submit", "deliver", "transmit"),
    "submit": ("submit", "send", "hand in", "file"),
    "generate": ("generate", "produce", "create", "build"),
    "accept": ("accept", "approve", "agree to", "confirm"),
    "reject": ("reject", "decline", "refuse", "turn down"),
    "search": ("search", "look through", "query", "scan"),
    "copy": ("copy", "duplicate", "clone", "replicate"),
    "import": ("import", "load", "bring in", "ingest"),
    "export": ("export", "dump", "save out", "extract"),
    "restore": ("restore", "recover", "bring back", "reinstate"),
    "allow": ("allow", "permit", "let"),
    "check": ("check", "verify", "test", "make sure of"),
    "validate": ("validate", "check", "verify", "test"),
    "replace": ("replace", "swap", "substitute", "overwrite"),
    "request": ("request", "ask for", "demand", "apply for"),
    "reset": ("reset", "restart", "reinitialise", "clear"),
    "restart": ("restart", "reboot", "start again", "bounce"),
    "move": ("move", "transfer", "relocate", "shift"),
    "assign": ("assign", "give", "allocate", "grant"),
    "grant": ("grant", "give", "assign", "allow"),
    "revoke": ("revoke", "withdraw", "take back", "cancel"),
    "apply": ("apply", "use", "put in place", "enforce"),
    "configure": ("configure", "set up", "adjust", "prepare"),
    "publish": ("publish", "release", "post", "make public"),
    "upload": ("upload", "push", "send up", "transfer"),
    "download": ("download", "pull", "fetch", "save locally"),
    "invoke": ("invoke", "call", "run", "trigger"),
    "tag": ("tag", "label", "mark"),
    "specify": ("specify", "define", "set", "declare"),
    "confirm": ("confirm", "approve", "acknowledge", "verify"),
    "complete": ("complete", "finish", "conclude", "wrap up"),
    "promote": ("promote", "raise", "elevate", "upgrade"),
    "terminate": ("terminate", "end", "shut down", "kill"),
    "query": ("query", "search", "ask", "look through"),
    "evaluate": ("evaluate", "assess", "judge", "test"),
    "define": ("define", "set", "declare", "specify"),
    "release": ("release", "free", "let go of", "give back"),
    "resume": ("resume", "continue", "pick up again"),
    "purge": ("purge", "empty", "wipe", "flush"),
    "initiate": ("initiate", "start", "begin", "open"),
    "reboot": ("reboot", "restart", "power cycle"),
    "sign": ("sign", "approve", "certify"),
    "test": ("test", "try out", "check", "probe"),
    "undo": ("undo", "revert", "roll back"), "archive": ("archive", "put away", "file away"),
    "encrypt": ("encrypt", "cipher", "scramble"),
    "decrypt": ("decrypt", "decipher", "unscramble"), "analyze": ("analyze", "examine", "study"),
    "detect": ("detect", "find", "spot", "recognise"), "exchange": ("exchange", "trade", "swap"),
    "find": ("find", "locate", "look for", "search for"), "mark": ("mark", "flag", "label"),
    "poll": ("poll", "ask", "query"), "renew": ("renew", "extend", "refresh"), "pause": ("pause", "suspend", "hold"),
    "notify": ("notify", "tell", "inform"), "ask": ("ask", "request"), "lock": ("lock", "freeze", "secure"),
    "upgrade": ("upgrade", "update", "move up"), "merge": ("merge", "combine", "join"),
    "scan": ("scan", "search", "go over"),
    "synchronize": ("synchronize", "sync", "bring in line"), "rotate": ("rotate", "cycle", "renew"),
    "view": ("view", "see", "show"), "verify": ("verify", "check", "confirm"), "write": ("write", "save", "store"),
    "wait": ("wait", "hold on"), "acquire": ("acquire", "take", "obtain"),
    "recover": ("recover", "restore", "bring back"),
    "extend": ("extend", "lengthen", "expand"), "retry": ("retry", "try again", "repeat"),
    "receive": ("receive", "get", "accept"),
    "report": ("report", "tell about", "announce"), "subscribe": ("subscribe", "sign up"),
    "join": ("join", "connect", "attach"),
    "obtain": ("obtain", "get", "fetch"), "discard": ("discard", "drop", "throw away"), "claim": ("claim", "take"),
    "record": ("record", "log", "note"),
}

PHRASES = (
    (r"\b(?:the|an?) (?:specified|given|provided|indicated|particular)\b",
     ("the given", "a specific", "the chosen", "one", "this", "that", "our")),
    (r"\b(?:specified|given|provided|indicated)\b", ("given", "chosen", "selected", "specific")),
    (r"\b(?:detailed )?information about\b",
     ("information about", "details of", "details about", "data on", "facts about")),
    (r"\bdetails (?:of|about|for)\b", ("details of", "information about", "data on", "facts about")),
    (r"\b(?:a list of|an array of|a summary of|summary information about)\b",
     ("a list of", "all", "every one of", "the set of")),
    (r"\bassociated with\b", ("associated with", "linked to", "that belong to", "tied to")),
    (r"\ban existing\b", ("an existing", "the existing", "a current", "the")),
    (r"\ba new\b", ("a new", "a fresh", "another", "one more")),
    (r"\byour\b", ("your", "our", "the", "my")),
    (r"\bone or more\b", ("one or more", "several", "some", "a few")),
    (r"\ball of the\b", ("all of the", "every one of the", "all")),
)

_LEAD_INS = re.compile(
    r"^(?:(?:use|using|call|invoke) (?:this|the)(?: \w+)? (?:api|operation|action|method|command|function)?"
    r"(?: call)? ?to |"
    r"(?:this|the)(?: \w+){0,2} (?:api|operation|action|method|command|function|call)(?: call)? "
    r"(?:can be used to |is used to |will |lets you |"
    r"allows you to |enables you to |allows \w+ to )?|used (?:by \w+ )?to |(?:lets|allows|enables) you (?:to )?|"
    r"(?:an? )?(?:asynchronous|long-running|synchronous) (?:operation|api) (?:that|to) )", re.IGNORECASE)
_BOILERPLATE = re.compile(
    r"^(?:for more|see |note|this is aws waf|amazon web services customers|important|learn more|if |when |you |we |it |"
    r"in the |end of support|deprecated|this (?:api|operation|action) (?:is|has|requires|supports))|not supported|"
    r"deprecated|http", re.IGNORECASE)
_CLAUSE = re.compile(
    r"(?:[,;:]| - | -- | which | such as | so that | by using | based on | if | when | whether or not | including )")
_DANGLING = frozenset("the a an of for to and or in with that from on your is".split())  # no clause ends in these
_NORMAL = re.compile(r"[^a-z0-9]+")
MAX_WORDS = 16


@dataclass(frozen=True)
class Intent:
    """What an API is for: an imperative ``verb`` (a key of VERBS) and the rest of its clause."""

    verb: str
    rest: str


def normalised(text: str) -> str:
    """Lower-case letters and digits only: one form for snake_case, CamelCase, kebab-case and spaced words."""
    return _NORMAL.sub("", text.lower())


def leaks_name(comment: str, name: str) -> bool:
    """Whether the comment gives the API's name away in any case style."""
    return normalised(name) in normalised(comment)


def imperative(word: str, verbs: Mapping[str, Wordings] = VERBS) -> str | None:
    """The verb's plain form if ``word`` is one of ``verbs`` in the imperative or the third person, else None."""
    word = word.lower()
    stems = (word, word[:-1] if word.endswith("s") else "", word[:-2] if word.endswith("es") else "",
             word[:-3] + "y" if word.endswith("ies") else "")
    return next((stem for stem in stems if stem in verbs), None)


def intent(description: str, verbs: Mapping[str, Wordings] = VERBS) -> Intent | None:
    """The first sentence that says what the API does, as an imperative clause; None where no sentence does."""
    for sentence in sentences(description)[:4]:
        clause = _LEAD_INS.sub("", sentence).strip()
        if _BOILERPLATE.search(clause):
            continue
        clause = re.sub(r"\([^)]*\)", " ", clause.replace("`", "").replace("Amazon Web Services", "AWS"))
        first, _, rest = clause.partition(" ")
        verb = imperative(first.strip(".,"), verbs)
        rest = _shorten(rest)
        if verb and len(rest.split()) >= 2:
            return Intent(verb, rest)
    return None


def _shorten(rest: str) -> str:
    """At most MAX_WORDS words, cut at a clause's end where there is one after the third word."""
    rest = re.sub(r"\s+", " ", rest).strip().rstrip(".").removeprefix("of ")
    for cut in _CLAUSE.finditer(rest):
        if len(rest[: cut.start()].split()) >= 3:
            rest = rest[: cut.start()]
            break
    words = rest.split()[:MAX_WORDS]
    while words and words[-1].lower() in _DANGLING:
        words.pop()
    return " ".join(words)


def reword(meaning: Intent, rng: random.Random, keep: float = 0.0, verbs: Mapping[str, Wordings] = VERBS) -> str:
    """One wording of the intent, chosen by ``rng``; each part keeps its plain form with probability ``keep``."""
    def choose(options: tuple[str, ...]) -> str:
        return options[0] if rng.random() < keep else rng.choice(options)

    rest = meaning.rest
    for pattern, options in PHRASES:
        rest = re.sub(pattern, lambda _: choose(options), rest, flags=re.IGNORECASE)
    comment = f"{choose(verbs[meaning.verb])} {rest}"
    return re.sub(r"\s+", " ", comment).strip()


def distinct_comments(description: str, name: str, count: int, seed: str,
                      verbs: Mapping[str, Wordings] = VERBS) -> list[str]:
    """Up to ``count`` different wordings, capitalised.

    None contains the API's name in any case style, none stands in the description.
    """
    meaning = intent(description, verbs)
    if meaning is None:
        return []
    rng, found, source = random.Random(f"comment {seed}"), {}, normalised(description)
    for _ in range(40 * count):
        comment = reword(meaning, rng, keep=0.25, verbs=verbs)
        if not leaks_name(comment, name) and normalised(comment) not in source:
            found.setdefault(normalised(comment), comment[0].upper() + comment[1:])
        if len(found) == count:
            break
    return list(found.values())
