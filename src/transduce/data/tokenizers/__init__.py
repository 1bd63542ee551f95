"""Text <-> token ids: how tokenizers are learnt, what they do, and whether one can be used."""
