/* Text to ids and back, as data/tokenizers/text_ids.py has it. Places in a text are counted in code points. */
"use strict";
(function (T) {
  const E = (T.engine ??= {});

  const ABSENT = -1;
  const USUAL_NAMES = {
    pad: ["<pad>", "[PAD]", "<|pad|>", "<|padding|>"],
    start: ["<s>", "[CLS]", "[BOS]", "<bos>", "<|startoftext|>", "<|begin_of_text|>", "<|startoftranscript|>"],
    end: ["</s>", "[SEP]", "[EOS]", "<eos>", "<|endoftext|>", "<|end_of_text|>", "<|eot_id|>", "<|im_end|>"],
    unknown: ["<unk>", "[UNK]", "<|unk|>"],
    mask: ["<mask>", "[MASK]", "<|mask|>"],
  };

  /** The tokenizer of a tokenizer.json, given as text. Throws Unsupported for one that would be read otherwise. */
  E.tokenizer = (json) => {
    try {
      return new Tokenizer(parts(JSON.parse(json)), {});
    } catch (problem) {
      if (problem instanceof E.Unsupported) throw problem;
      throw new E.Unsupported(`tokenizer: it cannot be read: ${problem.message}`);
    }
  };

  class Tokenizer {
    #parts;
    #roles;
    #silent; // ids that no text spells and no text shows

    constructor(parts, roles) {
      this.#parts = parts;
      this.#roles = roles;
      Object.assign(this, special(parts.ids, roles));
      this.size = 0;
      for (const id of parts.ids.values()) this.size = Math.max(this.size, id + 1);
      const named = parts.added.filter((token) => token.special && token.id !== this.unknown);
      this.#silent = new Set([this.pad, this.start, this.end, ...named.map((token) => token.id)]);
      this.#silent.delete(ABSENT);
    }

    /** The same with these special tokens in the place of those of usual names; "" = there is none. */
    withRoles(roles) {
      return new Tokenizer(this.#parts, { ...this.#roles, ...roles });
    }

    /** The spellings of its added tokens. */
    added() {
      return this.#parts.added.map((token) => token.content);
    }

    /** The ids of a text, without start and end. */
    encode(text) {
      return this.#cut(text).flatMap(([id]) => this.#asText(id));
    }

    /** For each token of a text, the characters [first, last) that it came from. */
    offsets(text) {
      return this.#cut(text).map(([, first, last]) => [first, last]);
    }

    /** The text of ids: special tokens are skipped, an unknown one shows as its name. */
    decode(ids) {
      const { tokens, decoder, decomposes } = this.#parts;
      const names = ids.filter((id) => !this.#silent.has(id)).flatMap((id) => tokens.get(id) ?? []);
      const text = decoder(names);
      return decomposes ? text.normalize("NFC") : text;
    }

    /** The vocabulary's own spelling of each id. */
    tokens(ids) {
      return ids.map((id) => this.#parts.tokens.get(id) ?? "None");
    }

    /** The ids that are spelled so. Throws where a spelling is no token's. */
    ids(tokens) {
      return tokens.map((token) => {
        const id = this.#parts.ids.get(token);
        if (id === undefined) throw new Error(`"${token}" is not a token of this model.`);
        return id;
      });
    }

    /** Tokens of a text as the library gives them: [[id, first, last]]. */
    #cut(text) {
      const lone = /\p{Surrogate}/u.exec(text);
      if (lone) throw new Error(`unit ${lone.index + 1} of the text is half of a character, a lone surrogate.`);
      const { model, prepare } = this.#parts;
      return this.#split(text).flatMap(({ id, piece }) => {
        if (id !== undefined) return [[id, piece.from[0], piece.to.at(-1)]];
        return prepare(piece).flatMap(({ chars, from, to }) =>
          model.cut(chars).map(([each, first, last]) => [each, from[first], to[last - 1]]),
        );
      });
    }

    /** A text cut at its added tokens, the longest of those that begin first: [{id, piece}]. */
    #split(text) {
      const found = [];
      let done = 0, // units
        chars = 0;
      const take = (end, id) => {
        if (end <= done) return;
        const piece = E.piece(text.slice(done, end), chars);
        found.push({ id, piece });
        chars += piece.chars.length;
        done = end;
      };
      for (let at = 0; at < text.length;) {
        const token = this.#parts.findable.get(text[at])?.find((each) => text.startsWith(each.content, at));
        if (token && !token.special) {
          take(at, undefined);
          take(at + token.content.length, token.id);
        }
        at += token ? token.content.length : 1; // a special token's name is text, and hides others within it
      }
      take(text.length, undefined);
      return found;
    }

    /** The id itself; of one that no text spells, the unknown one, or else the characters of its name. */
    #asText(id) {
      if (!this.#silent.has(id)) return [id];
      if (this.unknown !== ABSENT) return [this.unknown];
      const letters = Array.from(this.#parts.tokens.get(id)).flatMap((letter) => this.#cut(letter));
      return letters.map(([each]) => each).filter((each) => !this.#silent.has(each));
    }
  }

  /** The id of each role, by its name in `roles` or its usual names; -1 of one that is absent. */
  function special(ids, roles) {
    const found = {};
    for (const [role, usual] of Object.entries(USUAL_NAMES)) {
      if (roles[role] && !ids.has(roles[role])) throw new Error(`"${roles[role]}" is not a token of this vocabulary.`);
      const name = (role in roles ? [roles[role]] : usual).find((each) => ids.has(each));
      found[role] = name === undefined ? ABSENT : ids.get(name);
    }
    if (found.end === ABSENT) throw new E.Unsupported("tokenizer: its vocabulary has no end token.");
    if (found.start === ABSENT) found.start = found.pad === ABSENT ? found.end : found.pad;
    return found;
  }

  /** What a tokenizer.json says, ready to be used. */
  function parts(table) {
    const last = table.post_processor; // it adds special tokens, which are not asked for, or trims offsets
    if (last && !["TemplateProcessing", "BertProcessing"].includes(last.type) && last.trim_offsets !== false)
      throw new E.Unsupported(`tokenizer.post_processor: ${last.type} is not known here.`);
    const normalizer = steps(table.normalizer, "normalizers").map(normalizing);
    const preTokenizers = steps(table.pre_tokenizer, "pretokenizers");
    const cutting = preTokenizers.map(preTokenizing);
    const normalize = (piece) => normalizer.reduce((each, step) => step(each), piece);
    const prepare = (piece) => {
      const whole = [normalize(piece)].filter(({ chars }) => chars.length);
      return cutting.reduce((pieces, step) => step(pieces).filter(({ chars }) => chars.length), whole);
    };
    const spellsBytes = (ids) =>
      preTokenizers.some(({ type }) => type === "ByteLevel") && E.BYTE_CHARACTERS.every((char) => ids.has(char));
    const model = E.tokenModel(table.model, spellsBytes);
    const added = addedTokens(table.added_tokens ?? [], model, normalize);
    const ids = new Map([...model.ids, ...added.map(({ content, id }) => [content, id])]);
    const tokens = new Map([...ids].map(([token, id]) => [id, token]));
    for (const { content, id } of added) tokens.set(id, content);
    return {
      ...{ model, prepare, added, ids, tokens, decoder: decoding(table.decoder) },
      findable: byFirst(added.filter((token) => !token.normalized)),
      decomposes: normalize(E.piece("\u00e9")).chars.join("") === "e\u0301",
    };
  }

  /** The steps of a normalizer or a pre-tokenizer, those of a sequence one by one. */
  function steps(table, name) {
    if (table == null) return [];
    return table.type === "Sequence" ? table[name].flatMap((each) => steps(each, name)) : [table];
  }

  /** The added tokens. Each has the id that the library gives it. */
  function addedTokens(tables, model, normalize) {
    const seen = new Set();
    let next = model.ids.size;
    const refuse = (token, problem) => {
      throw new E.Unsupported(`tokenizer.added_tokens: "${token.content}" ${problem}.`);
    };
    for (const token of tables) {
      const id = model.ids.get(token.content) ?? next++;
      if (!token.content || seen.has(token.content)) refuse(token, "is empty or there twice");
      if (id !== token.id) refuse(token, `has the id ${token.id}; expected ${id}`);
      if (!token.special && (token.single_word || token.lstrip || token.rstrip || token.normalized))
        refuse(token, "is found in other ways than by its spelling");
      if (token.normalized && normalize(E.piece(token.content)).chars.join("") !== token.content)
        refuse(token, "is changed by the normalizer");
      seen.add(token.content);
    }
    return tables;
  }

  /** Tokens by the first unit of their spelling, the longest first. */
  function byFirst(tokens) {
    const found = new Map();
    for (const token of [...tokens].sort((one, other) => other.content.length - one.content.length)) {
      if (!found.has(token.content[0])) found.set(token.content[0], []);
      found.get(token.content[0]).push(token);
    }
    return found;
  }

  /** A step of a normalizer: piece -> piece. */
  function normalizing(table) {
    if (table.type === "Lowercase") return E.lowercased;
    if (table.type === "NFC" || table.type === "NFD") return (piece) => E.normalized(piece, table.type);
    if (table.type !== "Replace") throw new E.Unsupported(`tokenizer.normalizer: ${table.type} is not known here.`);
    const pattern = E.pattern(table.pattern, "tokenizer.normalizer: Replace");
    return (piece) => E.replaced(piece, pattern, table.content);
  }

  /** A step of a pre-tokenizer: pieces -> pieces. */
  function preTokenizing(table) {
    const part = `tokenizer.pre_tokenizer: ${table.type}`;
    const known = { Punctuation: punctuation, Metaspace: metaspace, ByteLevel: byteLevel, Split: split };
    if (!Object.hasOwn(known, table.type)) throw new E.Unsupported(`${part} is not known here.`);
    const step = known[table.type](table, part);
    return (pieces) => pieces.flatMap(step);
  }

  const punctuation = (table, part) => cuttingAt(E.PUNCTUATION, table.behavior ?? "Isolated", part);

  function split(table, part) {
    if (table.invert) throw new E.Unsupported(`${part}: invert is not known here.`);
    return cuttingAt(E.pattern(table.pattern, part), table.behavior, part);
  }

  /** Cuts a piece around all that is found, which stays as pieces of its own, or goes. */
  function cuttingAt(pattern, behavior, part) {
    if (behavior !== "Isolated" && behavior !== "Removed")
      throw new E.Unsupported(`${part}: the behavior ${behavior} is not known here.`);
    return (piece) => {
      const cuts = [];
      let done = 0;
      for (const [first, last] of E.found(piece, pattern)) {
        cuts.push(E.cut(piece, done, first));
        if (behavior === "Isolated") cuts.push(E.cut(piece, first, last));
        done = last;
      }
      return [...cuts, E.cut(piece, done, piece.chars.length)];
    };
  }

  /** A sign in front that comes from the first character. */
  const prefixed = (piece, sign) =>
    E.changed(piece, [[sign, 0], [piece.chars[0], 1], ...piece.chars.slice(1).map((char) => [char, 0])]);

  /** Spaces become a sign, which begins a piece of its own. */
  function metaspace(table, part) {
    const sign = table.replacement,
      scheme = table.add_prefix_space === false ? "never" : (table.prepend_scheme ?? "always");
    if (!["first", "never", "always"].includes(scheme)) throw new E.Unsupported(`${part}: prepend_scheme ${scheme}.`);
    return (piece) => {
      let signed = { ...piece, chars: piece.chars.map((char) => (char === " " ? sign : char)) };
      const wanted = scheme === "always" || (scheme === "first" && piece.shift === 0);
      if (wanted && signed.chars[0] !== sign) signed = prefixed(signed, sign);
      if (table.split === false) return [signed];
      const starts = signed.chars.flatMap((char, i) => (i === 0 || char === sign ? [i] : []));
      return starts.map((start, i) => E.cut(signed, start, starts[i + 1] ?? signed.chars.length));
    };
  }

  /** The character that spells each byte, as GPT-2 has it. */
  E.BYTE_CHARACTERS = [];
  for (let byte = 0, shifted = 256; byte < 256; byte++) {
    const printable = (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
    E.BYTE_CHARACTERS.push(String.fromCharCode(printable ? byte : shifted++));
  }
  const BYTES = new Map(E.BYTE_CHARACTERS.map((char, byte) => [char, byte]));
  const utf8 = new TextEncoder();

  function byteLevel(table) {
    const words = table.use_regex === false ? (piece) => [piece] : cuttingAt(E.BYTE_LEVEL_WORDS, "Isolated", "");
    const spelled = (char) => Array.from(utf8.encode(char), (byte, i) => [E.BYTE_CHARACTERS[byte], Number(i > 0)]);
    return (piece) => {
      const spaced = table.add_prefix_space !== false && piece.chars[0] !== " " ? prefixed(piece, " ") : piece;
      return words(spaced).map((word) => E.changed(word, word.chars.flatMap(spelled)));
    };
  }

  /** What joins the tokens of an output. */
  function decoding(table) {
    if (table == null) return (tokens) => tokens.join(" ");
    if (table.type === "Fuse") return (tokens) => tokens.join("");
    const reader = new TextDecoder("utf-8", { ignoreBOM: true });
    if (table.type === "ByteLevel") return (tokens) => reader.decode(bytesOf(tokens));
    if (table.type !== "Metaspace") throw new E.Unsupported(`tokenizer.decoder: ${table.type} is not known here.`);
    const drops = table.add_prefix_space !== false && table.prepend_scheme !== "never";
    return (tokens) =>
      tokens.map((token, i) => token.replaceAll(table.replacement, i === 0 && drops ? "" : " ")).join("");
  }

  /** Of each token the bytes that it spells; one that is not spelled in their characters is its own text. */
  function bytesOf(tokens) {
    const spelled = (token) => {
      const bytes = Array.from(token, (char) => BYTES.get(char));
      return bytes.includes(undefined) ? Array.from(utf8.encode(token)) : bytes;
    };
    return Uint8Array.from(tokens.flatMap(spelled));
  }
})((window.Transduce ??= {}));
