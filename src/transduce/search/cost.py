"""How many next tokens each search weighs: V words, outputs of T tokens, a beam of k.

Source: Zhang et al., Dive into Deep Learning, 10.8.
"""


def greedy_cost(vocabulary: int, length: int) -> int:
    """V T: one distribution a step."""
    return vocabulary * length


def beam_cost(beam: int, vocabulary: int, length: int) -> int:
    """k V T: one distribution a step for each slot."""
    return beam * vocabulary * length


def exhaustive_cost(vocabulary: int, length: int) -> int:
    """V^T: every sequence."""
    sequences: int = vocabulary**length
    return sequences
