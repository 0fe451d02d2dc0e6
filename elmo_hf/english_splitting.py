# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""English text to sentences and words, in the way of Universal Dependencies' English treebanks.

Words are what the first alternative of one pattern matches: addresses, numbers, abbreviations and
emoticons stay whole, contractions come apart (`do n't`, `it 's`), and all other punctuation is on
its own. A sentence ends at `.`, `!` or `?` and what closes it; since the periods of abbreviations
are parts of words by then, few rules are left. They were chosen on the training part of EWT.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import regex

# A text without full stops, such as a transcript, would otherwise be one sentence of any length.
LONGEST_SENTENCE = 1000

APOSTROPHES = "'’`´"
CLITICS = "s|m|re|ve|d|ll"


def any_of(words: str) -> str:
    """A pattern that matches one of these words."""
    return "|".join(words.split())


# They end in a period, and the word after them may begin with a capital letter.
TITLES = any_of("""
    Adm Attn Brig Capt Cmdr Col Cpl Dr Drs Fr Gen Gov Hon Lt Maj Messrs Mr Mrs Ms Pres Prof Pvt Rep
    Reps Rev Sec Sen Sens Sgt Supt
    Ala Apr Ariz Aug Calif Colo Conn Dec Del Dept Dist Feb Fig Figs Fla Fri Ft Ill Ind Jan Jul Jun
    Kan Ky La Mass Md Mich Minn Mo Mon Mt Nev Nov Oct Okla Ont Ore Pa Que Sat Sep Sept St Ste Tenn
    Tex Thu Thur Thurs Tue Tues Univ Va Vol Vt Wash Wed Wis Wyo
    Arrv Assn Nos No Op Ph
    approx apt arrv cf ed eds eg esp est ext fig figs ie incl max misc no nos pg pp tbsp tsp vol vs
""")
# They end in a period as well, and so may a sentence.
ENDINGS = any_of("""
    Ave Blvd Bros Co Corp Esq Inc Jr Ltd Rd Sr al ave dept ft hr hrs lb lbs min mins oz qt sq yr yrs
""")
# A word that begins with one of them keeps its hyphen.
PREFIXES = any_of("""
    anti arch bi co counter cross de di e eco em ex extra hyper infra inter intra macro mega meta
    micro mid mini mono multi neo non over para poly post pre pro proto pseudo psycho quasi re semi
    socio sub super trans tri ultra un under uni
""")
UNITS = any_of(r"""
    am pm AM PM a\.m\. p\.m\. A\.M\. P\.M\. k K m M MM b B bn mm cm km kg mg g lb lbs ft in sqft sq
    Hz hz kHz MHz GHz kb KB MB GB TB mph mpg min mins minutes hr hrs hours days yr yrs years percent
    watt W kW x C F p c t
""")
# of addresses without http, and of files
DOMAINS = any_of("""
    com org net edu gov mil int info biz co io tv me us uk de fr eu ca au in jp cn ru ch nl it es se
    no br ie nz htm html php asp aspx pdf doc docx xls xlsx ppt pptx txt zip jpg jpeg gif png exe
    mp3
""")
# After the period of an abbreviation, one of these begins a new sentence.
STARTERS = any_of("""
    A After All Also Although An And Any Are As At Because Before Both But By Can Could Did Do Does
    During Each Even Every For From Had Has Have He Her Here His How However I If In Is It Its Let
    Many May Most My No Not Now Of On Once One Only Or Our Please She Should Since So Some Such That
    The Their Then There These They This Those Though Thus To Under Until We Well Were What When
    Where Which While Who Why Will With Would Yes Yet You Your
""")
NEGATED = "are|ca|could|did|do|does|had|has|have|is|should|was|were|wo|would"
# A tail of an address does not end in punctuation.
TAIL = r"""[^\s\p{Cc}<>"“”]{0,2000}[^\s\p{Cc}<>"“”.,!?;:'’)\]}*]"""
EMOTICON = (
    r"[:;=][-~^o']?[)(\]\[DPpOo|/\\*3]+|>:[()]|[xX][D)]+|<3+|[(]-?[:;=]"
    r"|\^[_.-]?\^|[oO]_[oO]|T_T|>_<"
)
# Control characters and characters without width separate words like blanks.
BLANK = r"[\s\p{Cc}\u200b\u2060\ufeff]"
# Alternatives are tried from the first to the last. Repetitions that may fail after a long way are
# bounded, so that a text without blanks takes no longer than any other.
WORD = regex.compile(
    rf"""
      (?P<blank>{BLANK}+)
    | (?<!\S)\p{{L}}+(?!\S)
    # addresses
    | (?:https?|ftp|file)://{TAIL} | www\.{TAIL}
    | [\w.+-]{{1,64}}@[\w-]{{1,63}}(?:\.[\w-]{{1,63}}){{0,9}}
    | (?<![\w.])(?:[\w-]{{1,63}}\.){{1,9}}(?i:{DOMAINS})(?:/(?:{TAIL})?|(?!\w))
    | (?<!\w)(?:{EMOTICON})(?!\w)
    # 3:30 and 1,000.5; 3:30 before pm; the 60's; 555-1234 and 1-800-555-1234
    | (?<![\w.,])\+?\d+(?:[.,:/]\d+){{1,9}}(?!\w|[.,:/]\d)
    | (?<!\w)\d+(?:[.,:]\d+){{0,9}}(?=(?:{UNITS})(?!\w))
    | (?<![\w.])\d+[{APOSTROPHES}]s(?!\w)
    | (?<![\w-])(?:\d+[-/.]){{0,4}}\d{{3,}}-\d{{4}}(?![\w-])
    | (?<![\w-])\d+(?:-\d+){{2,9}}(?![\w-])
    # U.S. and Ph.D.; Mr. and Inc.; etc. inside a sentence; the initials of George W. Bush
    | (?<!\w)(?:\p{{L}}\.){{2,}}(?:\p{{L}}(?!\w))? | (?<!\w)Ph\.[Dd]\.?
    | (?<![\w.])(?:{TITLES}|{ENDINGS})\.(?![\w.])
    | (?<![\w.])etc\.(?=\s*[\p{{Ll}},;:)])
    | (?<![\w.'’])\p{{Lu}}\.(?=\s+\p{{Lu}}\p{{Ll}}|\s*\p{{Lu}}\.)
    | (?<=\d)(?:{UNITS})(?!\w)
    | (?<!\w)(?i:{PREFIXES})-\w+
    | (?<!\w)(?:w/o|c/o|n/a|N/A|w/|b/c)(?!\w)
    | \p{{Lu}}+&\p{{Lu}}+(?!\w)
    # 'em and '60s; 's, where words are apart already
    | (?<!\w)[{APOSTROPHES}](?:em|til|till|cause|bout|n|\d\ds?)(?!\w)
    | (?<!\S)[{APOSTROPHES}](?:{CLITICS})(?!\w)
    | \d+(?:[.,]\d+){{0,9}}(?:st|nd|rd|th|s)?(?!\w)
    | \w(?:
        [\w\p{{M}}\u00ad\u200c\u200d] | [{APOSTROPHES}*](?=\p{{L}})
        | (?<=\p{{Ll}})\.(?=\p{{Ll}}{{2}})
      )*
    # runs of one sign, and any other character
    | [.!?]{{2,}} | -{{2,}} | (?P<sign>[*=_~+\#^|•<>])(?P=sign)+ | '' | `` | ’’ | ‘‘ | ‘’
    | .\p{{M}}*
    """,
    regex.VERBOSE | regex.DOTALL,
)
CONTRACTION = regex.compile(
    rf".+?(n[{APOSTROPHES}]t|[{APOSTROPHES}](?:{CLITICS}))", regex.IGNORECASE
)
# one word on paper, two in a treebank
FUSED = regex.compile(rf"can(not)|gon(na)|wan(na)|got(ta)|i(m)|(?:{NEGATED})(nt)", regex.IGNORECASE)
STOP = regex.compile("[.!?]+|[…。！？｡]")
# periods and nothing else, but more than one
ELLIPSIS = regex.compile(r"\.{2,}|…")
STARTER = regex.compile(STARTERS)
ABBREVIATION = regex.compile(rf"(?:\p{{L}}\.){{2,}}|(?:{ENDINGS})\.")
CLOSING = regex.compile(r"""["”’')\]}»]|''|’’""")
QUOTES = frozenset("\"”’'")
SMILE = regex.compile(EMOTICON)
NOT_A_START = frozenset([",", ";", ":", "...", "/", "&", ")"])
OPENING = regex.compile(r"""["“‘'(\[{<*`\s]*""")
# what a numbered list has before its periods
LIST_NUMBER = regex.compile(r"\d{1,3}|\p{L}|[ivxIVX]{1,4}")


class EnglishWord(NamedTuple):
    """A word of a text."""

    form: str
    start: int
    end: int
    # whether it is written together with the word before it, as the second half of "don't"
    is_attached: bool = False


def split_english(text: str) -> Iterator[list[EnglishWord]]:
    """The sentences of a text; only one of them is in memory at a time."""
    sentence: list[EnglishWord] = []
    # the place in the sentence of the word that may have ended it
    stop: int | None = None
    for word in find_words(text):
        if stop is not None and not belongs_to_end(sentence, word):
            if begins_sentence(text, sentence, stop, word):
                yield sentence
                sentence = []
            stop = None
        if len(sentence) >= LONGEST_SENTENCE and not word.is_attached:
            yield sentence
            sentence, stop = [], None
        sentence.append(word)
        if stop is None and (STOP.fullmatch(word.form) or ABBREVIATION.fullmatch(word.form)):
            stop = len(sentence) - 1
    if sentence:
        yield sentence


def find_words(text: str) -> Iterator[EnglishWord]:
    for match in WORD.finditer(text):
        if match.lastgroup == "blank":
            continue
        form, start = match.group(), match.start()
        seams = [0, *find_seams(form), len(form)]
        for first, last in pairwise(seams):
            yield EnglishWord(form[first:last], start + first, start + last, first > 0)


def find_seams(form: str) -> list[int]:
    """Where the second word of a contraction begins, and the third one of "I'd've"."""
    seams: list[int] = []
    while match := (FUSED if form.isalpha() else CONTRACTION).fullmatch(form):
        seams.insert(0, match.start(match.lastindex))
        form = form[: seams[0]]
    return seams


def belongs_to_end(sentence: list[EnglishWord], word: EnglishWord) -> bool:
    """Whether a word after a full stop is still part of the end: quotes, brackets, a smile."""
    if word.start == sentence[-1].end and CLOSING.fullmatch(word.form):
        return True
    return bool(STOP.fullmatch(word.form) or SMILE.fullmatch(word.form))


def begins_sentence(text: str, sentence: list[EnglishWord], stop: int, word: EnglishWord) -> bool:
    """Whether a sentence that may have ended at its word number `stop` has: another one begins."""
    end = sentence[stop].form
    if not STOP.fullmatch(end):
        return STARTER.fullmatch(word.form) is not None
    if word.start == sentence[-1].end:
        return lacks_blank(sentence, stop, word)
    if word.form in NOT_A_START:
        return False
    opening = OPENING.match(text, word.start)
    first = text[opening.end() : opening.end() + 1] if opening else ""
    if first.islower():
        is_quoted = any(other.form in QUOTES for other in sentence[stop + 1 :])
        return not is_quoted and not ELLIPSIS.fullmatch(end)
    if ELLIPSIS.fullmatch(end):
        return first.isupper()
    return not (end == "." and stop == 1 and LIST_NUMBER.fullmatch(sentence[0].form))


def lacks_blank(sentence: list[EnglishWord], stop: int, word: EnglishWord) -> bool:
    """Whether only the blank between two sentences was forgotten, as in "It works.Try it!"."""
    if sentence[stop].form != ".":
        return sentence[stop].form[-1] in "!?" and word.form.isalpha()
    before = sentence[stop - 1].form if stop else ""
    return before.isalpha() and before.islower() and word.form.istitle() and len(word.form) > 1
