/* The sentence of the first page, to which others come back: one adjective decides what "it" stands for. */
"use strict";
(function (T) {
  const FRENCH = /((?<![\p{L}])(?:ils?|elles?)(?![\p{L}]))/iu;

  T.ADJECTIVES = ["tired", "wide"];
  T.sentence = (adjective) => `The animal didn't cross the street because it was too ${adjective}.`;

  /** The place of the first pronoun among words, -1 where there is none. */
  T.pronounIn = (words) => words.findIndex((word) => /\b(?:it|they)\b/i.test(word.text));

  /** French with its pronoun marked. */
  T.marked = (text) => text.split(FRENCH).map((part, i) => (i % 2 ? T.html("mark", {}, part) : part));
})(window.Transduce);
