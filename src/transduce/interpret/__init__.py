"""Interpretation of what a model did with a text: attention, important heads, single steps, and figures of them."""
