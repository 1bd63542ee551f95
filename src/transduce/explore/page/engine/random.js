/* NumPy's default_rng: PCG64 (O'Neill 2014) seeded by SeedSequence, so that samples are those of search/sample.py. */
"use strict";
(function (T) {
  const E = (T.engine ??= {});
  const WORDS = 4; // of 32 bits in the pool
  const MASK_64 = (1n << 64n) - 1n;
  const MASK_128 = (1n << 128n) - 1n;
  const MULTIPLIER = 0x2360ed051fc65da44385df649fccf645n;

  /** A hash whose constant changes with each call. */
  function hashing(constant, multiplier) {
    return (value) => {
      value = (value ^ constant) >>> 0;
      constant = Math.imul(constant, multiplier) >>> 0;
      value = Math.imul(value, constant) >>> 0;
      return (value ^ (value >>> 16)) >>> 0;
    };
  }

  function mixed(x, y) {
    const value = (Math.imul(0xca01f9dd, x) - Math.imul(0x4973f715, y)) >>> 0;
    return (value ^ (value >>> 16)) >>> 0;
  }

  /** The words of 32 bits of whole numbers, the lowest first. */
  const wordsOf = (numbers) =>
    numbers.flatMap((number) => {
      const words = [];
      for (let rest = BigInt(number); rest > 0n || !words.length; rest >>= 32n) words.push(Number(rest & 0xffffffffn));
      return words;
    });

  function pool(seeds) {
    const entropy = wordsOf(seeds);
    const hash = hashing(0x43b0d7e5, 0x931e8875);
    const words = Array.from({ length: WORDS }, (_, place) => hash(entropy[place] ?? 0));
    for (let from = 0; from < WORDS; ++from)
      for (let to = 0; to < WORDS; ++to) if (from !== to) words[to] = mixed(words[to], hash(words[from]));
    for (const word of entropy.slice(WORDS))
      for (let to = 0; to < WORDS; ++to) words[to] = mixed(words[to], hash(word));
    return words;
  }

  /** A function that gives the next number in [0, 1) of the stream with these seeds. */
  E.uniforms = (...seeds) => {
    const words = pool(seeds);
    const hash = hashing(0x8b51f9dd, 0x58f38ded);
    const state32 = Array.from({ length: 8 }, (_, place) => BigInt(hash(words[place % WORDS])));
    const [a, b, c, d] = [0, 2, 4, 6].map((place) => state32[place] | (state32[place + 1] << 32n));
    const increment = ((((c << 64n) | d) << 1n) | 1n) & MASK_128;
    let state = 0n;
    const step = () => (state = (state * MULTIPLIER + increment) & MASK_128);
    step();
    state = (state + ((a << 64n) | b)) & MASK_128;
    step();
    return () => {
      step();
      const folded = ((state >> 64n) ^ state) & MASK_64;
      const turn = state >> 122n;
      const drawn = ((folded >> turn) | (folded << (64n - turn))) & MASK_64;
      return Number(drawn >> 11n) / 2 ** 53;
    };
  };
})((window.Transduce ??= {}));
