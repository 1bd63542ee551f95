"""How many tokens of a text its tokenizer does not know: what a model cannot read, or write."""

from collections.abc import Sequence

from transduce.data.store import Store

TOLD, MANY = 0.001, 0.01  # shares of a side's tokens
HELP = (
    "A larger tokenizer.vocabulary or a smaller tokenizer.min_frequency leaves fewer unknown; in fine-tuning, so does "
    'training.start_tokenizer = "learn"'
)


def unknown_report(stores: Sequence[Store]) -> str:
    """A sentence for people, with what helps where there are many; "" where nearly all tokens are known."""
    shares = {side: share for side in ("source", "target") if (share := _share(stores, side)) >= TOLD}
    if not shares:
        return ""
    told = " and ".join(f"{share:.1%} of the {side}'s" for side, share in shares.items())
    return f"{told} tokens are unknown to the tokenizer." + (f" {HELP}." if max(shares.values()) >= MANY else "")


def _share(stores: Sequence[Store], side: str) -> float:
    tokens, unknown = (sum(store.metadata[key].get(side, 0) for store in stores) for key in ("tokens", "unknown"))
    return unknown / max(1, tokens)
