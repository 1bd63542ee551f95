/* What servers answer to what cannot be explored, in Chinese: [the message in English, the same in Chinese].

   $1, $2 .. stand for the parts in brackets. The messages are those of explore/exploration.py and serve/. */
"use strict";
window.Transduce.errors = {
  zh: [
    [/^text: expected (?:a sentence|an input of this model); this one is empty\.$/, "输入为空：请输入一个句子。"],
    [/^text: ([\d,]+) tokens; the model reads at most ([\d,]+) at once: shorten it\.$/, "输入有 $1 个词元，模型一次最多读入 $2 个：请缩短。"],
    [/^text: ([\d,]+) frames; the model reads at most ([\d,]+) at once: shorten it\.$/, "录音有 $1 帧，模型一次最多读入 $2 帧：请缩短。"],
    [/^this sentence and its output have ([\d,]+) attention weights; ([\d,]+) at most: shorten it\.$/, "句子及其输出共有 $1 个注意力权重，最多显示 $2 个：请缩短句子。"],
    [/^target: ([\d,]+) tokens; ([\d,]+) at most on this server: shorten it\.$/, "输出有 $1 个词元，这台服务器最多处理 $2 个：请缩短。"],
    [/^an ensemble cannot be explored; name a single one of its members\.$/, "集成模型无法可视化：请指定其中的一个模型。"],
    [/^this text was read in several windows: its attention is not known\.$/, "文本分多个窗口读入，无法得到注意力权重。"],
    [/^text: expected a recording; there is none\.$/, "没有录音。"],
    [/^text: expected a recording; this one is shorter than a frame, ([\d.]+) ms\.$/, "录音短于一帧（$1 毫秒）。"],
    [/^the server is busy; try again in (\d+) s\.$/, "服务器正忙，请在 $1 秒后重试。"],
    [/^the server is stopping\.$/, "服务器正在停止。"],
    [/^([\d,]+) characters; ([\d,]+) at most\.$/, "输入有 $1 个字符，最多 $2 个。"],
    [/^a recording of ([\d,]+) bytes; ([\d,]+) at most: send a shorter one\.$/, "录音有 $1 字节，最多 $2 字节：请使用较短的录音。"],
    [/^beam and nbest may be (\d+) at most on this server\.$/, "这台服务器上束宽最大为 $1。"],
  ],
};
