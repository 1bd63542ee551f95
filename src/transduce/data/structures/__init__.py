"""Trees, graphs, stories and questions on texts, as their files hold them."""
