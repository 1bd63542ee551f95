"""The cost of a layer as sequences grow: the textbooks' table, shown beside the measurements.

n positions, d width, k kernel, m slots, e edges of a graph. The orders are those of mixing positions; every model also
has position-wise layers, O(n d²). Hence self-attention is cheaper than recurrence only for n < d, and than a
convolution for n < k d. A recurrent cell that attends to its own past (lstmn) costs O(n² d) besides. A tree of n words
is as high as log n where it is balanced, and n where it is a chain.

Sources: Vaswani et al. 2017, table 1; Zhang et al., Dive into Deep Learning, 11.6; Katharopoulos et al. 2020.
"""

from typing import NamedTuple


class Complexity(NamedTuple):
    """The complexity of one layer.

    kinds: the models, and the encoders of models that have several, that are built from it.
    layer: operations. sequential: steps that must wait for each other. path: layers between two distant positions.
    """

    name: str
    kinds: tuple[str, ...]
    layer: str
    sequential: str
    path: str


LINEAR = ("linear_transformer", "linear_transformer_decoder", "linear")
GRAPHS = ("graph_attention", "graph_transformer")
TRANSFORMERS = ("transformer", "transformer_decoder", "non_autoregressive", "ctc", "qanet", "flat")

COMPLEXITIES = (
    Complexity("CNN", ("convolution",), "O(k n d²)", "O(1)", "O(log_k n) dilated, O(n/k) plainly stacked"),
    Complexity("RNN", ("rnn", "rnn_decoder", "ssru_transformer", "recurrent", "bidaf"), "O(n d²)", "O(n)", "O(n)"),
    Complexity("Transformer", TRANSFORMERS, "O(n² d)", "O(1)", "O(1)"),
    Complexity("linear attention", LINEAR, "O(n d²)", "O(1)", "O(1)"),
    Complexity("attention along edges", GRAPHS, "O(e d + n d²)", "O(1)", "O(diameter)"),
    Complexity("Tree-LSTM", ("tree_lstm",), "O(n d²)", "O(log n) to O(n)", "O(log n) to O(n)"),
    Complexity("Transformer on trees", ("tree_transformer",), "O(n² d)", "O(1)", "O(log n) to O(n)"),
    Complexity("memory network", ("memory_network",), "O(n d)", "O(1)", "O(1)"),
    Complexity("external memory", ("neural_turing_machine",), "O(n (d² + m d))", "O(n)", "O(1)"),
)


def complexity_of(kind: str, encoder: str = "") -> Complexity | None:
    """The row of a model kind, or where a model may have several, of its encoder; None where the table has none."""
    return next((row for row in COMPLEXITIES if (encoder or kind) in row.kinds), None)
