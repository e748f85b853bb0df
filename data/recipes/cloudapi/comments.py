"""Turns the SDK's description of an API into comments like those of a developer, by deterministic
rewriting.

The paper asks Claude 3 Sonnet for three concise comments per API (Appendix A.2, step 7). This
module works without that model: it turns the sentence that says what the API does into an
imperative, and rewords its verb, determiners and stock phrases. The comments in the mini models'
training corpus are made in the same way, but with other wordings.
"""

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from lookuplab.cloudapi.specs import ApiSpec
from recipes import tables
from recipes.prose import sentences

_TABLES = tables("cloudapi/wordings.yaml")
# Each table maps a verb to words that a developer may write in its place. PHRASES maps patterns of
# phrases in the same way. VERBS has the verbs of SDKs' descriptions. LIBRARY_VERBS adds the verbs
# of packages' docstrings. In MEANT, some verbs have other replacements, which are closer to the
# verb's meaning. In LIBRARY_MEANT, some replacements are changed again, for packages.
VERBS = _TABLES["sdk"]
LIBRARY_VERBS = VERBS | _TABLES["library"]
MEANT = LIBRARY_VERBS | _TABLES["meant"]
LIBRARY_MEANT = MEANT | _TABLES["library_meant"]
_IMPERATIVES = {word for options in LIBRARY_MEANT.values() for word in options}
PHRASES = {re.compile(each, re.I): options for each, options in _TABLES["phrases"].items()}

# matches the words before the verb of a sentence, such as "Use this operation to"; a verbose
# pattern ignores plain spaces, so "[ ]" stands for a space between words
_LEAD_INS = re.compile(
    r"""^(?:
    (?:use|using|call|invoke)[ ](?:this|the)(?:[ ]\w+)?
        [ ](?:api|operation|action|method|command|function)?(?:[ ]call)?[ ]?to[ ]
    |(?:this|the)(?:[ ]\w+){0,2}[ ](?:api|operation|action|method|command|function|call)(?:[ ]call)?
        [ ](?:can[ ]be[ ]used[ ]to[ ]|is[ ]used[ ]to[ ]|will[ ]|lets[ ]you[ ]|allows[ ]you[ ]to[ ]
        |enables[ ]you[ ]to[ ]|allows[ ]\w+[ ]to[ ])?
    |used[ ](?:by[ ]\w+[ ])?to[ ]
    |(?:lets|allows|enables)[ ]you[ ](?:to[ ])?
    |(?:an?[ ])?(?:asynchronous|long-running|synchronous)[ ](?:operation|api)[ ](?:that|to)[ ])""",
    re.IGNORECASE | re.VERBOSE,
)
# matches a sentence that does not say what the API does
_BOILERPLATE = re.compile(
    r"""^(?:for[ ]more|see[ ]|note[ ]|this[ ]is[ ]aws[ ]waf|amazon[ ]web[ ]services[ ]customers
    |important|learn[ ]more|if[ ]|when[ ]|you[ ]|we[ ]|it[ ]|in[ ]the[ ]|end[ ]of[ ]support
    |deprecated
    |this[ ](?:api|operation|action)[ ](?:is|has|requires|supports))
    |not[ ]supported|deprecated|http""",
    re.IGNORECASE | re.VERBOSE,
)
# matches the end of the clause that says what the API does
_CLAUSE = re.compile(
    "[,;:]| (?:-|--|which|such as|so that|by using|based on|if|when|whether or not|including) "
)
# words that never end a clause
_DANGLING = frozenset("the a an of for to and or in with that from on your is".split())
_THIRD_PERSON = ("s$", ""), ("es$", ""), ("ies$", "y")
# splits also before a sentence that begins with a lower-case letter, because its first word may be
# the name of a function or product
_NEXT_SENTENCE = re.compile(r"(?<=\w{3})\. (?=[a-z])")
MAX_WORDS = 16  # the rest of a longer clause is cut off
# "Returns True if the graph is empty, False otherwise." -> "check-whether the graph is empty"
_WHETHER = re.compile(
    r"^(?:returns?(?: true| boolean| bool)?|checks?|tests?|determines?|decides?|verify|verifies) "
    r"(?:iff?|whether|when)(?: and only if| or not)?\b",
    re.IGNORECASE,
)
_THAT = re.compile(r"^(?:checks?|verify|verifies|ensures?|makes? sure) that\b", re.IGNORECASE)
_OTHERWISE = re.compile(
    r",? (?:else|and|or|otherwise) (?:returns? )?(?:false|true|none)\b.*", re.IGNORECASE
)
# matches signs of code or markup; a text that contains such signs cannot become a comment
_SIGNS = re.compile(r"[<>{}\[\]|,=\\^~$]|::|\s-\w|\.\.|[:\"]$")
DETERMINERS, NOUNS, PREPOSITIONS, MISFITS = (
    frozenset(_TABLES[name].split()) for name in ("determiners", "nouns", "prepositions", "misfits")
)


class Intent(NamedTuple):
    """The purpose of an API: an imperative ``verb`` and the rest of its clause."""

    verb: str
    rest: str


def normalised(text: str) -> str:
    """Return a text in lower case with only its letters and digits. The result is the same for
    ``list_users``, ``ListUsers`` and ``list users``.
    """
    return re.sub(r"[^a-z0-9]+", "", text.lower())


@cache
def intent(description: str, in_library: bool = False) -> Intent | None:
    """Return the first sentence that says what an API does, as an imperative clause. At most
    MAX_WORDS words follow the verb. Return None if none of the description's first four sentences
    says what the API does.

    With ``in_library``, the description is the docstring of a function in a package. More verbs
    are then accepted than for an operation of an SDK, but None is also returned if the words after
    the verb do not fit (see ``_object``).
    """
    verbs = LIBRARY_MEANT if in_library else VERBS
    for sentence in sentences(description)[:4]:
        clause = _LEAD_INS.sub("", sentence).strip()
        if _BOILERPLATE.search(clause):
            continue
        clause = clause.replace("`", "").replace("Amazon Web Services", "AWS")
        if in_library:
            clause = _OTHERWISE.sub(
                "", _THAT.sub("check-that", _WHETHER.sub("check-whether", clause))
            )
        first, _, rest = re.sub(r"\([^)]*\)", " ", clause).partition(" ")
        rest = " ".join(rest.split()).rstrip(".").removeprefix("of ")
        ends = (found.start() for found in _CLAUSE.finditer(rest))
        cut = next((end for end in ends if len(rest[:end].split()) >= 3), None)
        words = rest[:cut].split()[:MAX_WORDS]
        while words and words[-1].lower() in _DANGLING:
            words.pop()
        said = first.strip(".,").lower()
        for stem in (said, *(re.sub(*end, said) for end in _THIRD_PERSON)):
            if stem in verbs and len(words) >= 2:
                if in_library:
                    words = [_imperative(*pair) for pair in zip(["", *words], words, strict=False)]
                    words = _object(words, stem.startswith("check-"))
                return Intent(stem, " ".join(words)) if words else None
    return None


def _imperative(before: str, word: str) -> str:
    """Return ``word`` as an imperative if it is a verb that follows "and", "or" or "then":
    ``store`` for ``stores`` in "Loads it and stores it". Return any other word unchanged.
    """
    if before in ("and", "or", "then"):
        stems = (re.sub(*end, word) for end in _THIRD_PERSON)
        return next((stem for stem in stems if stem in _IMPERATIVES), word)
    return word


def _object(words: list[str], is_clause: bool) -> list[str]:
    """Return the words if they can follow a verb in a sentence, otherwise []. The test is needed
    because docstrings often lack an article, or are not sentences.

    The words fit if a determiner comes before the first preposition, or if the word just before
    the first preposition is a plural, a name or a mass noun. If neither is true and the first
    preposition is "of", the words are returned with "the" in front ("the number of nodes").

    With ``is_clause``, the words follow "check that" or "check whether". Then only the first word
    is tested. If it does not fit and the second word is "is", "has" or "can", the words are
    returned with "the" in front.
    """
    plain = [word.lower().strip(",.'") for word in words]
    text = " ".join(words)
    if _SIGNS.search(text) or plain[0] in MISFITS or text.count("'") == 1:
        return []
    end = next((i for i, word in enumerate(plain) if word in PREPOSITIONS), len(plain))
    end = 1 if is_clause else end
    noun = words[end - 1]
    named = re.search(r"[^s]s$|^[A-Z]|_", noun) or noun in NOUNS
    if named or DETERMINERS & {*plain[:end]}:
        return words
    needs_article = plain[end : end + 1] in ([["is"], ["has"], ["can"]] if is_clause else [["of"]])
    return ["the", *words] if needs_article else []


def purpose(spec: ApiSpec) -> Intent | None:
    """Return the clause from which an API's comments are made, or None (as ``intent`` does)."""
    return intent(spec.description, spec.provider == "python")


# cached, because the wordings of an API repeat the same few texts
_occurs = lru_cache(10_000)(re.Pattern.search)


def reword(
    meaning: Intent,
    rng: random.Random,
    keep: float,
    verbs: Mapping[str, Sequence[str]] = MEANT,
) -> str:
    """Return one wording of an intent, in which the verb and each stock phrase are replaced. With
    probability ``keep``, the replacement is the first choice in the list, which is plain.
    Otherwise, the replacement is drawn at random from the list.

    The wording keeps the meaning of the SDK's description: "a new" does not become "another", and
    "the specified" does not become "one".
    """

    def choose(options: Sequence[str]) -> str:
        return options[0] if rng.random() < keep else rng.choice(options)

    rest = _NEXT_SENTENCE.split(meaning.rest)[0]
    for pattern, options in PHRASES.items():
        if _occurs(pattern, rest):
            rest = pattern.sub(lambda _: choose(options), rest)  # noqa: B023
    return " ".join(f"{choose(verbs[meaning.verb])} {rest}".split())


def wordings(spec: ApiSpec, count: int) -> Iterator[str]:
    """Yield up to ``count`` different wordings of an API's purpose, each with a capital first
    letter. A wording takes milliseconds.

    No wording contains the API's name, be it in snake_case or CamelCase, and no wording occurs in
    the description.
    """
    if (meaning := purpose(spec)) is None:
        return
    seen = set()
    rng = random.Random(f"comment {spec.id}")
    source = normalised(spec.description)
    verbs = LIBRARY_MEANT if spec.provider == "python" else MEANT
    for _ in range(40 * count):
        comment = reword(meaning, rng, 0.25, verbs)
        plain = normalised(comment)
        if normalised(spec.name) not in plain and plain not in source and plain not in seen:
            seen.add(plain)
            yield comment[0].upper() + comment[1:]
            if len(seen) == count:
                return
