"""Trained models against known answers, and which of them is better."""
