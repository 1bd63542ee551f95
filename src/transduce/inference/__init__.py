"""What is done with a trained model: decoding, likelihood, constraints, texts of several sentences."""
