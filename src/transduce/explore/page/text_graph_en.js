/* What the page says of graphs, in English. text_graph_zh.js has the same keys. */
"use strict";
Object.assign(window.Transduce.texts.en, {
  "view.neighborhood_drawing": "Graph",
  "composer.node": "Node, by name or number",
  "composer.graph": "Graph, as JSON",
  "graph.title": "The graph",
  "graph.around": "Around node {node}",
  "graph.caption": "The wider a line, the more its one end reads of the other. The model says {label}.",
  "graph.around.caption":
    "The wider a line, the more its one end reads of the other. The model says {label} of the node in bold. Shown are the nodes that count most for it.",
  "graph.left": "{left} more are left out.",
  "graph.note":
    "Point at a node, tap it, or walk with the arrow keys: the lines that it reads by stand out. A ring is what it reads of itself.",
  "graph.around.note":
    "Point at a node, tap it, or walk with the arrow keys: the lines that it reads by stand out. A ring is what it reads of itself. A click or Enter goes to that node.",
  "graph.role": "picture of a graph",
  "graph.label": "{title}: {nodes} nodes",
  "graph.head": "Head",
  "graph.node": "node {node}",
  "graph.itself": "itself",
  "graph.reads": "reads {nodes}",
  "graph.counts": "counts {share} for the graph",
  "graph.reader": "Node",
  "graph.read": "reads",
});
