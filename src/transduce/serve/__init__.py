"""Serve models over HTTP: texts and markup in segments, batches across requests, LibreTranslate's API and our own."""
