"""Teachers, their translations, and students that learn from them."""
