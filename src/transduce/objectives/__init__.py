"""Training objectives, and the likelihood of targets."""
