"""Files of documents in, the same files with translated text out: one file a format.

`transduce.documents.formats` finds a format by the file's name. A format takes a file apart: into runs of text with
inline codes (`transduce.documents.runs`), and all that stands between them, which stays byte for byte.
"""
