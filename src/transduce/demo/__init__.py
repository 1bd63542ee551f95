"""The built-in corpus, in which a model must find out what *it* stands for."""
