/* Where numbers come from: the server that gave this page, or the data inside an offline file. Answers are kept. */
"use strict";
(function (T) {
  const element = document.getElementById("data");
  const data = element ? JSON.parse(element.textContent) : null;
  const answers = new Map();
  const MOST_ANSWERS = 60;

  /** Whether this is the one file that works alone. */
  T.offline = data !== null;
  /** What this file holds; null where there is a server. */
  T.stored = data;

  class Unavailable extends Error {}
  /** Asked for something that needs the server, in the file that has none. */
  T.Unavailable = Unavailable;

  let key = "";
  /** The key that some servers ask for; it is kept only as long as the page is open. */
  T.useKey = (given) => {
    key = given;
  };
  /** Whether one was given, which then was not the right one if a key is asked for. */
  T.hasKey = () => key !== "";
  class KeyNeeded extends Error {}
  T.KeyNeeded = KeyNeeded;

  const headers = (body) => ({
    ...(body ? { "content-type": "application/json" } : {}),
    ...(key ? { "x-api-key": key } : {}),
  });

  async function answered(method, path, body, signal) {
    let response;
    const sent = T.sent(body);
    try {
      response = await fetch(path, {
        method,
        headers: headers(body),
        body: body ? JSON.stringify(sent) : undefined,
        signal,
      });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new Error(T.say("error.away"));
    }
    if (response.ok) return response;
    const answer = await response.json().catch(() => ({}));
    if (response.status === 403) throw new KeyNeeded(answer.error);
    throw new Error(T.told(answer.error || `${response.status} ${response.statusText}`));
  }

  const call = async (method, path, body) => (await answered(method, path, body)).json();
  /** The response to a question, whose body is read as it comes. */
  T.post = (path, body, signal) => answered("POST", path, body, signal);

  /** One answer for equal questions; what failed is asked again. */
  function kept(method, path, body) {
    const question = `${path} ${JSON.stringify(body)}`;
    if (!answers.has(question)) {
      answers.set(question, call(method, path, body));
      answers.get(question).catch(() => answers.delete(question));
      if (answers.size > MOST_ANSWERS) answers.delete(answers.keys().next().value);
    }
    return answers.get(question);
  }

  const post = (name, body) => kept("POST", `/v1/explore/${name}`, body);
  const given = async (value) => {
    if (value === undefined || value === null) throw new Unavailable(T.say("offline.missing"));
    return value;
  };
  const stored = (model, text) => data.explorations.find((each) => each.model === model && each.text === text);

  const online = {
    models: async () => (await kept("GET", "/v1/explore/models")).models,
    predict: (model, text, beam, sentence, changes) =>
      post("predict", {
        model,
        text,
        ...(beam ? { beam: Number(beam) } : {}),
        ...(sentence ? { sentence: T.place(sentence, Infinity) } : {}),
        ...changes,
      }),
    written: (model, text) => post("predict", { model, text, as_it_stands: true }),
    heads: (model, text, target) => post("heads", { model, text, target }),
    why: (model, text, target, other) => post("why", { model, text, target, other }),
    rollout: (model, text, target) => post("rollout", { model, text, target }),
    steps: (model, text, target, name, head, query) => post("steps", { model, text, target, name, head, query }),
    example: () => kept("GET", "/v1/explore/example"),
    positions: (model, length) => post("positions", { model, length }),
    training: (model, from) => call("POST", "/v1/explore/training", { model, ...(from ? { from } : {}) }),
    examples: () => [],
  };

  const embedded = {
    models: () => given(data.models),
    predict: async (model, text, beam, sentence, changes) => {
      const anew = (beam || changes) && T.live(model);
      const known = anew ? undefined : stored(model, text);
      const asked = { changes, sentence: T.place(sentence || "", Infinity), ...(beam ? { beam: Number(beam) } : {}) };
      return known ?? given(T.live(model)?.explore(text, asked));
    },
    written: () => given(null),
    heads: async (model, text, target) =>
      given(stored(model, text)?.heads ?? T.live(model)?.importance(text, target)),
    why: async (model, text, target, other) => given(T.live(model) && T.whyIn(T.live(model), text, target, other)),
    rollout: (model, text) => given(stored(model, text)?.rollout),
    steps: async (model, text, target, name, head, query) =>
      given(T.live(model)?.steps(text, target, name, head, query)),
    example: () => given(data.example),
    positions: (model) => given(model === data.models[0].name ? data.positions : null),
    training: (model) => given(model === data.models[0].name ? data.training : null),
    examples: (model) => data.explorations.filter((each) => each.model === model).map((each) => each.text),
  };

  /** The calls of the explorer's API by name; each gives a promise. */
  T.ask = T.offline ? embedded : online;
})(window.Transduce);
