/* Regular expressions of a tokenizer.json, which are Oniguruma's, as JavaScript's. */
"use strict";
(function (T) {
  const E = (T.engine ??= {});

  const CLASSES = { "\\p{Cc}": "\\p{Cc}", "\\s": "\\p{White_Space}", "\\S": "\\P{White_Space}" };
  const TOKEN = /\\p\{\w+\}|\\[^]|\(\?<[!=]|\[\^|&&|\+\+|\{\d+(?:,\d*)?\}|[^]/gu;

  const literal = (char) => `\\u{${char.codePointAt(0).toString(16)}}`;

  /** The pattern of a Replace or a Split, to be found again and again: {"String": ...} or {"Regex": ...}. */
  E.pattern = (table, part) => {
    if (typeof table?.String === "string" && table.String)
      return new RegExp(Array.from(table.String, literal).join(""), "gu");
    if (typeof table?.Regex !== "string") throw new E.Unsupported(`${part}: it has no pattern.`);
    try {
      return new RegExp(translated(table.Regex.match(TOKEN) ?? []), "gu");
    } catch (problem) {
      throw new E.Unsupported(`${part}: the pattern ${JSON.stringify(table.Regex)}: ${problem.message}`);
    }
  };

  /** Characters, classes of them, \A and \z, what stands before, and repetitions of one or more. */
  function translated(tokens) {
    const parts = [];
    let groups = 0,
      finds = false; // at least one character
    for (let at = 0; at < tokens.length;) {
      if (tokens[at] === "\\A" || tokens[at] === "\\z") {
        parts.push(tokens[at++] === "\\A" ? "^" : "$");
        continue;
      }
      if (tokens[at].startsWith("(?<")) {
        const [one, end] = character(tokens, at + 1);
        if (tokens[end] !== ")") throw new Error("only one character may be asked for before.");
        parts.push(`${tokens[at]}${one})`);
        at = end + 1;
        continue;
      }
      const [one, end] = character(tokens, at);
      const [many, next] = repeated(tokens, end);
      finds = true;
      at = next;
      if (many === "++") parts.push(`(?=(${one}+))\\${++groups}`);
      else parts.push(many === "+" && !parts.length && endsText(tokens, at) ? `(?<!${one})${one}+` : one + many);
    }
    if (!finds) throw new Error("it finds places without characters.");
    return parts.join("");
  }

  /** Whether only the end of the text is wanted: then a run is tried from its beginning alone. */
  const endsText = (tokens, at) => at === tokens.length - 1 && tokens[at] === "\\z";

  /** One character of a pattern, and where it ends. */
  function character(tokens, at) {
    const token = tokens[at];
    if (token === "[" || token === "[^") return ofClass(tokens, at);
    if (token in CLASSES) return [CLASSES[token], at + 1];
    return [single(token, "^$.|?*+(){}[]&&"), at + 1];
  }

  /** A character that stands for itself, or is escaped. */
  function single(token, signs) {
    const escapes = { "\\n": "\n", "\\t": "\t", "\\r": "\r" };
    if (token in escapes) return literal(escapes[token]);
    const found = /^\\?([^])$/u.exec(token);
    if (!found || (token.length > 1 && token[0] === "\\" && /[\p{L}\p{N}\s]/u.test(found[1])))
      throw new Error(`${token} is not known here.`);
    if (token === "\\" || (!token.startsWith("\\") && signs.includes(token)))
      throw new Error(`${token} is not known here.`);
    return literal(found[1]);
  }

  /** [abc], [^abc], [abc&&[^d]] as one character, and where it ends. */
  function ofClass(tokens, at) {
    const negated = tokens[at] === "[^",
      sides = [[]];
    let next = at + 1;
    for (; tokens[next] !== "]";) {
      const token = tokens[next];
      if (token === undefined) throw new Error("a class does not end.");
      if (token === "[" || token === "[^") {
        const [inner, end] = ofClass(tokens, next);
        sides.at(-1).push(inner);
        next = end;
      } else if (token === "&&") {
        sides.push([]);
        next += 1;
      } else if (tokens[next + 1] === "-" && tokens[next + 2] !== "]") {
        sides.at(-1).push(`[${single(token, "[]-")}-${single(tokens[next + 2] ?? "", "[]-")}]`);
        next += 3;
      } else {
        sides.at(-1).push(CLASSES[token] ?? single(token, "[]-^"));
        next += 1;
      }
    }
    if (sides.some((side) => !side.length)) throw new Error("a class is empty.");
    const any = sides.map((side) => `(?:${side.join("|")})`);
    const all = any.map((side) => `(?=${side})`).join("");
    return [negated ? `(?:(?!${all})[^])` : any.length === 1 ? any[0] : `(?:${all}[^])`, next + 1];
  }

  /** How often, and where that ends. */
  function repeated(tokens, at) {
    const many = tokens[at] ?? "";
    if (many === "*" || many === "?") throw new Error(`${many} is not known here.`);
    if (many !== "+" && many !== "++" && !/^\{\d/.test(many)) return ["", at];
    if (/^\{0/.test(many)) throw new Error(`${many} is not known here.`);
    if (["+", "++", "?", "*"].includes(tokens[at + 1])) throw new Error(`${many}${tokens[at + 1]} is not known here.`);
    return [many, at + 1];
  }
})((window.Transduce ??= {}));
