/* What the page says of graphs, in Chinese. text_graph_en.js has the same keys. */
"use strict";
Object.assign(window.Transduce.texts.zh, {
  "view.neighborhood_drawing": "图",
  "composer.node": "节点（名称或编号）",
  "composer.graph": "图（JSON）",
  "graph.title": "整张图",
  "graph.around": "节点 {node} 的邻域",
  "graph.caption": "边越粗，表示一端从另一端聚合的信息越多。模型的判断是 {label}。",
  "graph.around.caption": "边越粗，表示一端从另一端聚合的信息越多。模型对粗体节点的判断是 {label}。图中是对它影响最大的节点。",
  "graph.left": "另有 {left} 个节点未显示。",
  "graph.note": "指向或轻点一个节点，或用方向键移动：它聚合信息所用的边会突出显示。圆环表示它从自身聚合的部分。",
  "graph.around.note": "指向或轻点一个节点，或用方向键移动：它聚合信息所用的边会突出显示。圆环表示它从自身聚合的部分。单击或按回车键转到该节点。",
  "graph.role": "图的示意图",
  "graph.label": "{title}：{nodes} 个节点",
  "graph.head": "头",
  "graph.node": "节点 {node}",
  "graph.itself": "自身",
  "graph.reads": "聚合自 {nodes}",
  "graph.counts": "在整张图中的权重 {share}",
  "graph.reader": "节点",
  "graph.read": "聚合自",
});
