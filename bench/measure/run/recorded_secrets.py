"""Recorded addresses with a secret or a person's name, which must not get into results."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, unquote, urlsplit

# A parameter is secret by a word of its name: `access_token`, `X-Amz-Signature`, but not `author`.
SECRET_WORD = re.compile(
    r"tokens?|passw(or)?d|passphrase|passcode|pwd?|secret|session(id|key)?|s(ess)?id|sig|signature|hmac|(api|access)key"
    r"|credentials?|o?auth|authorization|bearer|jwt|t?otp|csrf|e?mail|saml(response)?|ticket"
)
# Words that identify a person.
PERSONAL_WORD = re.compile(r"(tele)?phone(number)?|msisdn|iban|ssn|dob|birth(day|date)|passport|cvv|cvc|cardnumber")
# Endings of such words if words are not divided.
ENDINGS = ("token", "password", "passwd", "secret", "signature", "apikey", "sessionid", "sessid", "email")
# Vague words that count by themselves or beside one of the others, as in `reset_code`, unlike `country_code`.
VAGUE_WORD = re.compile("code|key|hash|pass|pin")
BESIDE = re.compile("reset|verify|verification|confirm|confirmation|activat(e|ion)|access|invite|login|private|api")
# Path segments in front of a secret.
BEFORE_SECRETS = re.compile(
    "token|reset|verify|verification|confirm|confirmation|activat(e|ion)|invite|invitation|magic|unsubscribe|unlock"
)
JWT = re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]*")
# Signatures by Django with a time: https://docs.djangoproject.com/en/stable/topics/signing/
SIGNED = re.compile(r":[A-Za-z0-9]{6}:[\w-]{27,}")
# But neither a handle (`@jane@social.example`), nor an image for fine screens (`logo@2x.png`).
EMAIL = re.compile(r"(?<![\w@.+-])[\w.+-]+@(?!\dx\.)[\w-]+(\.[\w-]+)*\.[A-Za-z]{2,}")
# Long and random: letters and digits change often. Slugs and dates do not.
RANDOM = re.compile(r"[A-Za-z0-9]{20,}")
CHANGES = re.compile(r"(?<=[A-Za-z])(?=[0-9])|(?<=[0-9])(?=[A-Za-z])")
RANDOM_CHANGES = 3
# A hash in the address of a file is its version.
FILE = re.compile(r"\.[A-Za-z][A-Za-z0-9]{1,4}$")
VERSION_NAMES = frozenset({"v", "ver", "version", "rev", "h"})
# Parameters added to links by advertisers: the campaign and the click.
TRACKER = re.compile(
    r"utm_\w+|(fb|g|d|y|ms|tt|tw|ir)clid|[gw]braid|gad_\w+|_g[al]|li_fat_id|igshid|igsh|mc_cid|srsltid"
)
# A number that can be called from anywhere, and https://www.iso.org/standard/81090.html
PHONE = re.compile(r"[+ ]\d{1,3}([ ()/.-]*\d){7,13}")
IBAN = re.compile(r"[A-Z]{2}\d{2}[A-Z0-9]{11,30}")
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")


def has_secret(address: str) -> bool:
    """True if a path with its query contains a secret or identifies a person: by a name, or by a value."""
    url = urlsplit(address.lstrip("/"))
    queries = parse_qsl(url.query, keep_blank_values=True)
    if any(_by_name(name) or _in_value(name, value) for name, value in queries):
        return True
    return _in_path(unquote(url.path).split("/"))


def _has_word(name: str, pattern: re.Pattern[str]) -> bool:
    return any(pattern.fullmatch(word.lower()) for word in _WORDS.findall(name))


def _by_name(name: str) -> bool:
    if _has_word(name, SECRET_WORD) or _has_word(name, PERSONAL_WORD) or name.lower().endswith(ENDINGS):
        return True
    return bool(VAGUE_WORD.fullmatch(name.lower())) or (_has_word(name, VAGUE_WORD) and _has_word(name, BESIDE))


def _in_value(name: str, value: str) -> bool:
    if value.startswith(("/", "http:", "https:")):
        # `?next=/in?token=...`
        return has_secret(value)
    may_be_random = name.lower() in VERSION_NAMES or bool(TRACKER.fullmatch(name.lower()))
    return _is_secret(value, may_be_random=may_be_random) or bool(PHONE.fullmatch(value)) or _is_iban(value)


def _is_iban(value: str) -> bool:
    """True if the check digits of an account number are right."""
    text = value.replace(" ", "").upper()
    if not IBAN.fullmatch(text):
        return False
    digits = "".join(str(int(letter, 36)) for letter in text[4:] + text[:4])
    return int(digits) % 97 == 1


def _in_path(segments: list[str]) -> bool:
    is_file = bool(FILE.search(segments[-1]))
    if any(_is_secret(segment, may_be_random=is_file) for segment in segments):
        return True
    # `/activate/8f0e12/` and `/reset/MQ/c1a2-9f8e/`, but not `/reset/done/`.
    after = next((i for i, segment in enumerate(segments, 1) if _has_word(segment, BEFORE_SECRETS)), len(segments))
    return not is_file and any(CHANGES.search(segment) for segment in segments[after:])


def _is_secret(value: str, *, may_be_random: bool) -> bool:
    if JWT.search(value) or SIGNED.search(value) or EMAIL.search(value):
        return True
    candidates = []
    if not may_be_random:
        candidates = RANDOM.findall(value)
    return any(len(CHANGES.findall(run)) >= RANDOM_CHANGES for run in candidates)
