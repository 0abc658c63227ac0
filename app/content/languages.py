"""Names of languages, as BCP 47 writes them: “de”, “pt-BR”, “zh-Hant”."""

import re

# ISO 639-1: the languages that have a code of two letters, which BCP 47 asks for
# where there is one. https://www.loc.gov/standards/iso639-2/php/English_list.php
_CODES = """
aa ab ae af ak am an ar as av ay az ba be bg bi bm bn bo br bs ca ce ch co cr cs cu
cv cy da de dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he
hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv ka kg ki kj kk kl km kn ko
kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd
ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se
sg si sk sl sm sn so sq sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty
ug uk ur uz ve vi vo wa wo xh yi yo za zh zu
"""
_TAG = re.compile(
    r"(?P<code>[a-z]{2,3})(?:-(?P<script>[a-z]{4}))?(?:-(?P<region>[a-z]{2}|\d{3}))?",
    re.IGNORECASE | re.ASCII,
)


def tag_of(word: str) -> str:
    """A language as its tag is written, or an empty string for what is none.

    >>> [tag_of(word) for word in ("de", "PT-br", "zh-hant-TW", "German", "jp")]
    ['de', 'pt-BR', 'zh-Hant-TW', '', '']
    """
    match = _TAG.fullmatch(word)
    if match is None:
        return ""
    code = match["code"].lower()
    if len(code) == 2 and code not in _CODES.split():  # a country, such as “jp”
        return ""
    parts = code, (match["script"] or "").title(), (match["region"] or "").upper()
    return "-".join(part for part in parts if part)


def same_language(one: str, other: str) -> bool:
    """Whether two tags name one language, wherever it is spoken.

    >>> same_language("en-GB", "en"), same_language("de", "en")
    (True, False)
    """
    return one.partition("-")[0] == other.partition("-")[0]
