"""A model file over HTTP: text and markup in segments, batches across requests, LibreTranslate's API and our own."""
