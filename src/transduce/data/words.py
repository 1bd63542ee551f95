"""What a word is where texts are not cut into tokens: letters of one script; of scripts without spaces, a character."""

import re

SINGLE = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"  # scripts without spaces
WORD = re.compile(rf"[{SINGLE}]|[^\W\d_{SINGLE}]+")
