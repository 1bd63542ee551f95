/* What the server is asked: a text in parts of whole lines, which the server translates one by one anyway. */
"use strict";
(function (T) {
  const PART = 1500; // characters, after which a part ends with its line
  const MOST_KEPT = 200;
  const SIMILAR = 70; // percent, from which on a pair of the translation memory is shown
  const kept = new Map(); // parts that were translated, so that writing on at the end asks only for the end
  const place = (name) => new URL(name, location.href.split("#")[0]).href;
  const url = place("translate");

  /** An error in the page's words: say(key, values). */
  class Refused extends Error {
    constructor(key, values = {}) {
      super(key);
      this.told = [key, values];
    }
  }
  T.Refused = Refused;

  /** As the server counts them: code points. */
  T.characters = (text) => Array.from(text).length;

  T.parts = (text) => {
    const found = [""];
    for (const line of text.split(/(?<=\n)/)) {
      if (found.at(-1).length > PART) found.push("");
      found[found.length - 1] += line;
    }
    return found;
  };

  /** The translation of a text. grown(text, told) is told what is known so far: matches of the translation memory,
      warnings, and the confidence by the length of the parts. Raises Refused. */
  T.translate = async (text, source, target, key, signal, grown) => {
    let output = "",
      sure = 0,
      judged = 0;
    const [matches, warnings] = [[], []];
    for (const part of T.parts(text)) {
      const answer = part.trim() ? await translated(part, source, target, key, signal) : { translatedText: part };
      output += answer.translatedText;
      matches.push(...(answer.matches ?? []));
      warnings.push(...(answer.warnings ?? []));
      if (answer.confidence !== undefined) [sure, judged] = [sure + part.length * answer.confidence, judged + part.length];
      grown(output, { matches, warnings, confidence: judged ? sure / judged : null });
    }
    return output;
  };

  async function translated(q, source, target, key, signal) {
    const body = JSON.stringify({ q, source, target, ...terms(), ...(T.data.memory ? { matches: SIMILAR } : {}) });
    if (!kept.has(body)) {
      kept.set(body, await asked(url, body, key, signal));
      if (kept.size > MOST_KEPT) kept.delete(kept.keys().next().value);
    }
    return kept.get(body);
  }

  /** The glossary, where there is one. */
  function terms() {
    const glossary = T.glossary();
    return Object.keys(glossary).length ? { glossary } : {};
  }

  /** Other words in a place of a translation; see /v1/alternatives. Raises Refused. */
  T.alternatives = (values, key, signal) => asked(place("v1/alternatives"), JSON.stringify(values), key, signal);

  async function asked(address, body, key, signal) {
    const headers = { "content-type": "application/json" };
    return (await answered(address, { method: "POST", headers, body, signal }, key)).json();
  }

  /** The translation of a file, as a blob. Raises Refused. */
  T.translateFile = async (file, source, target, key, signal) => {
    const body = new FormData();
    for (const [name, value] of Object.entries({ file, source, target })) body.append(name, value);
    const answer = await answered(place("translate_file"), { method: "POST", body, signal }, key);
    const { translatedFileUrl } = await answer.json();
    const name = translatedFileUrl.slice(translatedFileUrl.lastIndexOf("/") + 1); // of a proxy the rest may be wrong
    return (await answered(place(`download_file/${name}`), { signal }, key)).blob();
  };

  /** The response to a request that the server took. Raises Refused. */
  async function answered(address, request, key) {
    let response;
    try {
      const headers = { ...request.headers, ...(key ? { "x-api-key": encoded(key) } : {}) };
      response = await fetch(address, { ...request, headers });
      if (response.ok) return response;
    } catch (error) {
      throw request.signal.aborted || error instanceof Refused ? error : new Refused("error.away");
    }
    const { error } = await response.json().catch(() => ({}));
    throw refusal(response, error ?? `${response.status} ${response.statusText}`, key);
  }

  /** A header holds no more than Latin-1. Raises Refused for a key that has other characters. */
  function encoded(key) {
    if (/[^\x20-\x7e]/.test(key)) throw new Refused("error.wrong.key");
    return key;
  }

  function refusal(response, reason, key) {
    const { status, headers } = response;
    if (status === 403 && T.data.key) return new Refused(key ? "error.wrong.key" : "error.key");
    if (status === 429) return new Refused("error.busy", { seconds: Number(headers.get("retry-after")) || 5 });
    if (status === 503) return new Refused("error.late");
    return status >= 500 ? new Refused("error.broken") : new Refused("error.refused", { reason });
  }

  /** The same request as a command for a shell, in single quotes, which JSON can do without. */
  T.curl = (text, source, target) => {
    const body = JSON.stringify({ q: text, source, target, ...terms() }).replaceAll("'", "\\u0027");
    const key = T.data.key ? ' -H "x-api-key: $TRANSDUCE_API_KEY"' : "";
    return `curl '${url.replaceAll("'", "%27")}' -H 'content-type: application/json'${key} -d '${body}'`;
  };
})(window.Transduce);
