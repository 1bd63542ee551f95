/* What the page says of graphs, in Chinese. text_graph_en.js has the same keys. */
"use strict";
Object.assign(window.Transduce.texts.zh, {
  "view.neighborhood_drawing": "图",
  "composer.node": "节点（名称或编号）",
  "composer.graph": "图（JSON）",
  "graph.title": "整张图",
  "graph.around": "节点 {node} 的周围",
  "graph.caption": "线越粗，一端从另一端读取得越多。模型的判断是 {label}。",
  "graph.around.caption": "线越粗，一端从另一端读取得越多。模型对粗体节点的判断是 {label}。图中是对它影响最大的节点。",
  "graph.left": "另有 {left} 个节点未画出。",
  "graph.note": "指向或轻点一个节点，或用方向键移动：它读取时所经的线会突出显示。圆环是它从自身读取的部分。",
  "graph.around.note":
    "指向或轻点一个节点，或用方向键移动：它读取时所经的线会突出显示。圆环是它从自身读取的部分。点击或按回车键转到该节点。",
  "graph.role": "图的示意图",
  "graph.label": "{title}：{nodes} 个节点",
  "graph.head": "头",
  "graph.node": "节点 {node}",
  "graph.itself": "自身",
  "graph.reads": "读取 {nodes}",
  "graph.counts": "在整张图中占 {share}",
  "graph.reader": "节点",
  "graph.read": "读取",
});
