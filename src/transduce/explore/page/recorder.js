/* The composer of a model of speech: record, choose or drop a file, or name one of this machine. */
"use strict";
(function (T) {
  let now = null; // what is being recorded: {recorder, stream, begun, timer}
  let count = 0;
  const QUIET = 0.001; // the loudest sample of a microphone that is switched off

  const place = (id) => document.getElementById(id);
  const show = (text) => T.go({ text, sentence: "", row: "", node: "", best: "" });

  /** What went wrong, or what goes on, for eyes and ears. */
  function tell(text, wrong = false) {
    const line = place("recorder-told");
    if (!line) return;
    line.classList.toggle("wrong", wrong);
    T.fill(line, text);
  }

  /** known: {models, model, text}; the model's `accepts_audio` says what it may be given. */
  T.recorder = ({ models, model, text }) => {
    const { accepts_audio } = model;
    const form = T.html(
      "form",
      { class: "composer recorder", on: { submit: (event) => (event.preventDefault(), named()) } },
      T.html(
        "div",
        { class: "composer-head" },
        T.html(
          "h2",
          {},
          T.say("recorder.title"),
          model.target ? T.html("span", { class: "language" }, T.languageName(model.target)) : null,
        ),
        models.length > 1 ? T.modelChoice(models, model) : T.html("span", { class: "model-name" }, model.name),
      ),
      T.offline ? T.html("p", { class: "hint" }, T.say("recorder.offline")) : ways(model),
      T.html("p", { class: "hint", id: "recorder-told", role: "status" }),
      !T.offline && accepts_audio.files ? fileName(text) : null,
      list(model, text),
    );
    if (!T.offline && accepts_audio.rate) dropping(form, accepts_audio);
    return form;
  };

  const named = () => {
    const text = place("sentence")?.value.trim();
    if (text) show(text);
  };

  /** The button that records, the one that chooses a file, and what may be dropped. */
  function ways({ accepts_audio }) {
    if (!accepts_audio.rate) return T.html("p", { class: "hint" }, T.say("recorder.features"));
    const chooser = T.html("input", {
      type: "file",
      id: "sound-file",
      accept: "audio/*,.wav,.flac,.ogg",
      hidden: true,
      "aria-label": T.say("recorder.choose"),
      on: { change: (event) => take(event.target.files[0], accepts_audio) },
    });
    const can = window.isSecureContext && navigator.mediaDevices?.getUserMedia && window.MediaRecorder;
    return T.html(
      "div",
      { class: "drop", id: "drop" },
      T.html(
        "div",
        { class: "controls" },
        T.html(
          "button",
          {
            type: "button",
            class: "primary",
            id: "record",
            disabled: !can,
            "aria-pressed": String(Boolean(now)),
            on: { click: () => (now ? finish() : record(accepts_audio)) },
          },
          T.say(now ? "recorder.stop" : "recorder.record"),
        ),
        T.html("button", { type: "button", class: "quiet", id: "choose", on: { click: () => chooser.click() } }, T.say("recorder.choose")),
        chooser,
      ),
      T.html("p", { class: "hint" }, T.say("recorder.drop", { seconds: T.short(accepts_audio.seconds) })),
      can ? null : T.html("p", { class: "hint", id: "no-recording" }, T.say(window.isSecureContext ? "recorder.cannot" : "recorder.insecure")),
    );
  }

  /** Where only this machine's user asks, a file may be named, also one in an archive. */
  const fileName = (text) =>
    T.html(
      "div",
      { class: "controls" },
      T.html(
        "label",
        { class: "grow" },
        T.say("recorder.file"),
        T.html("input", {
          type: "text",
          id: "sentence",
          spellcheck: "false",
          value: T.sounds().includes(text) ? "" : text,
          placeholder: "recordings/one.wav",
        }),
      ),
      T.html("button", { type: "submit", class: "quiet", id: "send" }, T.say("recorder.read")),
    );

  function list(model, text) {
    const examples = T.examples(model);
    if (!examples.length) return null;
    return T.html(
      "div",
      { class: "examples", role: "group", "aria-label": T.say("recorder.list") },
      examples.map((each, i) =>
        T.html(
          "button",
          {
            type: "button",
            class: "example",
            id: `example-${i}`,
            title: each,
            "aria-pressed": String(each === text),
            on: { click: () => show(each) },
          },
          T.soundName(each),
        ),
      ),
    );
  }

  function dropping(form, accepts_audio) {
    const over = (on) => form.classList.toggle("over", on);
    form.addEventListener("dragover", (event) => (event.preventDefault(), over(true)));
    form.addEventListener("dragleave", () => over(false));
    form.addEventListener("drop", (event) => {
      event.preventDefault();
      over(false);
      if (event.dataTransfer.files.length) take(event.dataTransfer.files[0], accepts_audio);
    });
  }

  /** A file that was chosen or dropped. */
  async function take(file, accepts_audio) {
    if (!file) return;
    if (!file.size) return tell(T.say("recorder.empty", { name: file.name }), true);
    if (accepts_audio.bytes && file.size > accepts_audio.bytes)
      return tell(T.say("recorder.large", { name: file.name, most: T.short(accepts_audio.bytes / 1e6) }), true);
    try {
      const url = await T.dataUrl(file);
      show(T.keepSound(file.name, url));
    } catch {
      tell(T.say("recorder.unread", { name: file.name }), true);
    }
  }

  const REASONS = { NotAllowedError: "recorder.denied", NotFoundError: "recorder.none", NotReadableError: "recorder.busy" };

  async function record(accepts_audio) {
    let stream;
    try {
      stream = await navigator.mediaDevices.getUserMedia({ audio: { channelCount: 1 } });
    } catch (error) {
      return tell(T.say(REASONS[error.name] || "recorder.cannot"), true);
    }
    const parts = [];
    const recorder = new MediaRecorder(stream);
    recorder.addEventListener("dataavailable", (event) => parts.push(event.data));
    recorder.addEventListener("stop", () => done(new Blob(parts, { type: recorder.mimeType }), accepts_audio));
    const begun = performance.now();
    now = { recorder, stream, timer: setInterval(() => tick(begun, accepts_audio.seconds), 100) };
    recorder.start();
    mark();
    tick(begun, accepts_audio.seconds);
  }

  function tick(begun, most) {
    const seconds = (performance.now() - begun) / 1000;
    if (seconds >= most) return finish();
    const line = place("recorder-told");
    if (!line) return;
    const told = T.say("recorder.going", { seconds: seconds.toFixed(1), most: T.short(most) });
    line.setAttribute("aria-live", "off"); // nobody wants to hear every tenth of a second
    line.classList.remove("wrong");
    T.fill(line, told);
  }

  function finish() {
    if (!now) return;
    clearInterval(now.timer);
    now.recorder.stop();
    for (const track of now.stream.getTracks()) track.stop();
    now = null;
    mark();
    place("recorder-told")?.removeAttribute("aria-live");
    tell(T.say("recorder.reading"));
  }

  function mark() {
    const button = place("record");
    if (!button) return;
    button.setAttribute("aria-pressed", String(Boolean(now)));
    T.fill(button, T.say(now ? "recorder.stop" : "recorder.record"));
    T.announce(T.say(now ? "recorder.started" : "recorder.stopped"));
  }

  /** What the browser recorded, at the model's own rate, in one channel. */
  async function done(blob, accepts_audio) {
    try {
      const decoded = await new OfflineAudioContext(1, 1, accepts_audio.rate).decodeAudioData(await blob.arrayBuffer());
      const most = Math.floor(accepts_audio.seconds * decoded.sampleRate);
      const channels = T.range(decoded.numberOfChannels).map((each) => decoded.getChannelData(each));
      const samples = T.mean(channels).subarray(0, most);
      if (T.largest(samples) < QUIET) return tell(T.say("recorder.silent"), true);
      const url = await T.dataUrl(T.wav(samples, decoded.sampleRate));
      count += 1;
      show(T.keepSound(T.say("recorder.name", { number: count, seconds: decoded.duration.toFixed(1) }), url));
    } catch (error) {
      console.debug(error);
      tell(T.say("recorder.broken"), true);
    }
  }
})(window.Transduce);
