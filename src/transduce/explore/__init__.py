"""Attention, looked at."""
