"""Using a trained model: decoding, likelihood, constraints, and texts of several sentences."""
