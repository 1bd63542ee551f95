"""A recipe that trains for a second on the tiny corpus of conftest.py; its folder is put in for [data]."""

DIGITS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]

TINY_RECIPE = """
[task]
kind = "translation"
metrics = ["bleu", "exact_match"]
[data]
train = [{ source = "train.digits", target = "train.words" }]
validation = { source = "valid.digits", target = "valid.words" }
[data.test.held_out]
source = "test.digits"
target = "test.words"
[tokenizer]
kind = "whitespace"
[batch]
tokens = 120
[model]
kind = "transformer"
d_model = 16
heads = 2
encoder_layers = 1
decoder_layers = 1
feed_forward = 32
dropout = 0.1
[training]
threads = 1  # bytes are compared between processes
updates = 24
optimizer = "muon"
learning_rate = 5e-3
warmup = 5
accumulate = 2
average = 0.9
precision = "fp32"
validate_every = 6
decode_sentences = 8
checkpoint_every = 4
log_every = 3
[search]
beam = 3
"""
