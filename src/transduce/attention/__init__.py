"""The mechanism: score, mask, weigh, read out."""
