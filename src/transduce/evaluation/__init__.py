"""Evaluate trained models on known answers, and compare them."""
