"""How many next tokens each search method considers, for V words, outputs of T tokens and a beam of k.

Source: Zhang et al., Dive into Deep Learning, 10.8.
"""


def greedy_cost(vocabulary: int, length: int) -> int:
    """V T: one distribution per step."""
    return vocabulary * length


def beam_cost(beam: int, vocabulary: int, length: int) -> int:
    """k V T: one distribution per step and slot."""
    return beam * vocabulary * length


def exhaustive_cost(vocabulary: int, length: int) -> int:
    """V^T: every sequence."""
    sequences: int = vocabulary**length
    return sequences
