"""How byte-level tokenizers spell bytes."""

from collections.abc import Iterator
from functools import cache


def printable_bytes() -> Iterator[str]:
    """The character by which byte-level tokenizers spell each byte 0..255 (GPT-2's `bytes_to_unicode`)."""
    shifted = 256
    for byte in range(256):
        if 33 <= byte <= 126 or 161 <= byte <= 172 or byte >= 174:
            yield chr(byte)
        else:
            yield chr(shifted)
            shifted += 1


def bytes_of(token: str) -> bytes:
    """What a token of a byte-level tokenizer stands for; one that is not spelled in its characters is its own text."""
    byte_of = _byte_of()
    if any(character not in byte_of for character in token):
        return token.encode()
    return bytes(byte_of[character] for character in token)


@cache
def _byte_of() -> dict[str, int]:
    return {character: byte for byte, character in enumerate(printable_bytes())}
