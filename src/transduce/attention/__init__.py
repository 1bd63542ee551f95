"""The attention mechanism: score each key against the query, mask, normalize to weights, sum the weighted values."""

from transduce.attention.cache import KeyValue
from transduce.attention.capture import Record, capture
from transduce.attention.heads import MultiHeadAttention
from transduce.attention.scaled_dot_product import attend, attend_with_weights, attention_weights

__all__ = ["KeyValue", "MultiHeadAttention", "Record", "attend", "attend_with_weights", "attention_weights", "capture"]
