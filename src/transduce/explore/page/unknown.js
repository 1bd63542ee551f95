/* Words that the model has never seen: its tokenizer reads them, or a part of them, as its token for what is unknown. */
"use strict";
(function (T) {
  const UNKNOWN = ["<unk>", "[UNK]", "<|unk|>"]; // as data/tokenizers/text_ids.py has them
  const END = ["</s>", "[SEP]", "[EOS]", "<eos>", "<|endoftext|>", "<|end_of_text|>", "<|eot_id|>", "<|im_end|>"];

  /** Whether a word of a side has a part that is unknown. */
  T.isUnknown = (side, word) => word.tokens.some((place) => UNKNOWN.includes(side.tokens[place]?.text));

  /** Whether an output has tokens, and all of them are unknown. */
  const nothingElse = ({ tokens }) => {
    const written = tokens.filter(({ text }) => !END.includes(text));
    return written.length > 0 && written.every(({ text }) => UNKNOWN.includes(text));
  };

  /** What is to be said of an output of nothing but unknown; null of any other. */
  T.unknownOutput = ({ target }) =>
    nothingElse(target) &&
    T.html("p", { class: "hint wrong", id: "unknown-output", role: "status" }, T.say("unknown.output"));

  /** Which words of the source are unknown, in a sentence; null where none is. */
  T.unknownWords = ({ source }) => {
    const found = [...new Set(source.words.filter((word) => T.isUnknown(source, word)).map(({ text }) => text))];
    return (
      found.length > 0 &&
      T.html("p", { class: "hint", id: "unknown-words" }, T.say("unknown.words", { words: found.join(", ") }))
    );
  };
})(window.Transduce);
